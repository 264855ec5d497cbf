"""The HTTP edge: bounded exchanges, for the inventory and for reports."""
