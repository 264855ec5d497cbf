"""Extents: who occupies them, what a size needs, how they are handed out."""
