"""The commands, a module each or a family of small ones together."""
