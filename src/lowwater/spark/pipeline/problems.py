"""What is wrong with a pipeline: everything at once, each with its place in the file and a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lowwater.errors import LowwaterError
from lowwater.spark.pipeline.secrets import Secrets
from lowwater.spark.pipeline.toml_places import Path, Place, Places


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` is the key: source.orders.start. `line` and `column` are 0 for pipelines that are not from a file."""

    line: int
    column: int
    path: str
    what: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"line {self.line}, column {self.column}: " if self.line else ""
        subject = f"{self.path}: " if self.path else ""
        return f"{place}{subject}{self.what}" + (f"; {self.hint}" if self.hint else "")


class PipelineError(LowwaterError):
    """A pipeline that cannot be run as it stands. `problems` has all that was found, in the order of the file."""

    def __init__(self, problems: Sequence[Problem], where: str = "") -> None:
        # What two sources share is found twice, and told once.
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda problem: (problem.line, problem.column)))
        self.where = where
        super().__init__("\n".join(_told(problem, where) for problem in self.problems))


def _told(problem: Problem, where: str) -> str:
    if not where:
        return str(problem)
    if not problem.line:
        return f"{where}: {problem}"
    rest = Problem(0, 0, problem.path, problem.what, problem.hint)
    return f"{where}:{problem.line}:{problem.column}: {rest}"


@dataclass(slots=True)
class Report:
    """Collects problems while a document is read. No secret gets into their words."""

    places: Places | None = None
    secrets: Secrets = field(default_factory=Secrets)
    problems: list[Problem] = field(default_factory=list)

    def key(self, path: Path, what: str, hint: str = "") -> None:
        """Something about the key itself, or about one that is missing."""
        self._add(self.places.key(path) if self.places else None, path, what, hint)

    def value(self, path: Path, what: str, hint: str = "") -> None:
        """Something about what the key is set to."""
        self._add(self.places.value(path) if self.places else None, path, what, hint)

    def inside(self, path: Path, line: int, column: int, what: str, hint: str = "") -> None:
        """Something at a line (from 1) and column (from 0) of a text."""
        self._add(self.places.inside(path, line, column) if self.places else None, path, what, hint)

    def path_of(self, table: Path, name: str) -> Path:
        """Of a setting of others, as it is written in the file."""
        return self.places.path_of(table, name) if self.places else (*table, *name.split("."))

    def has_told(self, path: Path) -> bool:
        """Whether something is wrong with that key already, or with another that was probably meant to be it."""
        key, table, meant = dotted(path), dotted(path[:-1]), f"did you mean {path[-1]}?"
        return any(
            problem.path == key
            or problem.path.startswith((f"{key}.", f"{key}["))
            or (problem.path.rpartition(".")[0] == table and problem.hint == meant)
            for problem in self.problems
        )

    def _add(self, place: Place | None, path: Path, what: str, hint: str) -> None:
        line, column = place or (0, 0)
        mask = self.secrets.masked
        self.problems.append(Problem(line, column, dotted(path), mask(what), mask(hint)))


def dotted(path: Path) -> str:
    """step[0].sql, kafka.bootstrap.servers."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint, empty when nothing is near."""
    near = nearest(name, known)
    return f"did you mean {near}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant."""
    lowered = {choice.lower(): choice for choice in known}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return lowered[close[0]] if close else None
