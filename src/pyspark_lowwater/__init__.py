"""Where Spark looks for formats: it imports every module of such a name, and takes its DefaultSource."""

from lowwater.spark.source import LowwaterSource as DefaultSource

__all__ = ["DefaultSource"]
