"""Where objects and refs live: each engine is one way to keep the contract of snapstore.engine."""
