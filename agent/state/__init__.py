"""The state directory: locks, and the file that `agent status` reads."""
