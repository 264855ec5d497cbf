"""Audits LVM on a host against the sizes its inventory records."""

__version__ = "0.1.0"
