"""How things look: pure functions from values to lines of text."""
