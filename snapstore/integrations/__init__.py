"""Other programs and frameworks that keep their sessions here, each with what it asks for."""
