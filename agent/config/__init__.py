"""The configuration: its keys, where values come from, how it is shown."""
