"""Pipelines as a file: topics in, steps in SQL and Python, and where the result goes."""
