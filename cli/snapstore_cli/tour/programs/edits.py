"""The tool of an agent: it edits a file in the way that the agent asked for."""

from pathlib import Path

config = Path("project/config.toml")
config.write_text(config.read_text().replace("8080", "9090"))
Path("project/server.py").write_text("PORT = 9090\n")
print("edited config.toml, wrote server.py")
