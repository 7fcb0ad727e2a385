"""Spark: a source and a sink for topics, and pipelines over them."""
