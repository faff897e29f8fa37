"""The local engine: an append-only log of batches. Start reading at batch.py, the format."""
