"""What Spark, or a function of the user's, refuses once a pipeline is built."""

from __future__ import annotations

from lowwater.errors import LowwaterError
from lowwater.spark.pipeline.problems import Report, dotted
from lowwater.spark.pipeline.toml_places import Path


class RefusedError(LowwaterError):
    """`path` is the key that it is about. `line` (from 1) and `column` (from 0) are within its text; 0: unknown."""

    def __init__(self, path: Path, what: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"{dotted(path)}: {what}")
        self.path = path
        self.what = what
        self.line = line
        self.column = column

    def tell(self, report: Report) -> None:
        """At its place in the file."""
        if self.line:
            report.inside(self.path, self.line, self.column, self.what)
        else:
            report.value(self.path, self.what)
