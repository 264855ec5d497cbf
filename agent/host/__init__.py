"""The edges to this host, one kind of I/O each.  They import the core, never another edge."""
