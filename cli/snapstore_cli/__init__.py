"""The snapstore command: the only layer that prints, prompts or reads the environment."""
