"""Bytes of every message and version, judged by implementations that are not ours."""
