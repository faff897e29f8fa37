"""Tasks of shell commands: the file that describes one, and how its commands are run."""
