"""The SQLite edge: reports wait here until the inventory has them."""
