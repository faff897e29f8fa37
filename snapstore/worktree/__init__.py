"""The files that an agent works on: captured with a save, brought back when asked."""
