"""Care of a store: what is checked, counted, mended and collected."""
