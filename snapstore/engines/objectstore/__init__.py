"""The object-store engine: one store for workers on many hosts, on S3 and what is like it."""
