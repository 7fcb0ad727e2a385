"""What Spark, or a function of the user's, refuses once a pipeline is built."""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.errors import LowwaterError
from lowwater.spark.pipeline.problems import Report, did_you_mean, dotted
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


def no_column(path: Path, name: str, columns: Sequence[str]) -> RefusedError:
    """For a key that names a column which is not among those of its rows."""
    hint = did_you_mean(name, columns) or f"there are {', '.join(columns)}"
    return RefusedError(path, f"there is no column {name!r}; {hint}")
