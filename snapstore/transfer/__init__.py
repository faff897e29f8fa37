"""Sessions on their way into a store and out of it."""
