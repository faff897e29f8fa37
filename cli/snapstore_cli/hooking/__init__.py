"""The command that harnesses run at every event. It starts without click, for they wait for it."""
