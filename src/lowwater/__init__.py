"""Lowwater: everything about offsets in a partitioned log."""

__version__ = "0.1.0"
