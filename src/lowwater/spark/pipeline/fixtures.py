"""Tests of a pipeline on rows that stand in a file: given these rows in the sources, a step has to give those.

    [[case]]
    name = "an order that is paid"
    given.orders = [{ order_id = 1, amount = 10, timestamp = 2026-03-02T12:00:00Z }]
    given.payments = [{ order_id = 1, timestamp = 2026-03-02T12:05:00Z }]
    expect.paid = [{ order_id = 1 }]

Sources that are not named have no rows, columns that are not named are null. Of a step's rows only the columns count
that the expected rows name. Rows are complete from the beginning: watermarks drop nothing here.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lowwater.errors import ConfigError
from lowwater.spark.pipeline.model import Model
from lowwater.spark.pipeline.problems import PipelineError, Report, did_you_mean
from lowwater.spark.pipeline.row_values import shown_row, to_key
from lowwater.spark.pipeline.toml_places import Path, Places

Row: TypeAlias = Mapping[str, Any]
_CASE_KEYS = ("name", "given", "expect")


@dataclass(frozen=True, slots=True)
class Case:
    """`path` is its place in the file, for what is wrong with it."""

    name: str
    given: Mapping[str, Sequence[Row]]
    expect: Mapping[str, Sequence[Row]]
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Fixtures:
    cases: tuple[Case, ...]
    report: Report
    where: str = ""

    def raise_problems(self) -> None:
        if self.report.problems:
            raise PipelineError(self.report.problems, self.where)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a step gave in a case: rows that were expected and are missing, and rows that nobody expected."""

    case: str
    step: str
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.case}: {self.step} differs"]
        lines += [f"  missing     {row}" for row in self.missing]
        lines += [f"  unexpected  {row}" for row in self.unexpected]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class TestReport:
    """`steps` counts the expectations, over all cases."""

    __test__ = False  # not a test of ours

    cases: int
    steps: int
    differences: tuple[Difference, ...] = ()

    @property
    def is_right(self) -> bool:
        return not self.differences


def load_fixtures(path: str, model: Model) -> Fixtures:
    """ConfigError when the file is not there; PipelineError has everything that is wrong with it."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(f"cannot read the test in {path}: {error.strerror}") from None
    return parse_fixtures(text, model, where=path)


def parse_fixtures(text: str, model: Model, *, where: str = "") -> Fixtures:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where or 'the test'} is not TOML: {error}") from None
    report = Report(Places(text), model.secrets)
    cases = [_case(each, ("case", place), model, report) for place, each in enumerate(_cases(document, report))]
    found = Fixtures(tuple(cases), report, where)
    found.raise_problems()
    return found


def _cases(document: Mapping[str, Any], report: Report) -> Sequence[Any]:
    for name in document:
        if name != "case":
            report.key((name,), "there is no such key", "tests are written as [[case]]")
    cases = document.get("case", [])
    if not isinstance(cases, list) or not cases:
        report.key(("case",), "there is no test", "write [[case]]")
        return []
    return cases


def _case(values: Any, path: Path, model: Model, report: Report) -> Case:
    values = values if isinstance(values, Mapping) else {}
    for name in values:
        if name not in _CASE_KEYS:
            report.key((*path, name), "there is no such key", f"there are {', '.join(_CASE_KEYS)}")
    sources = [source.name for source in model.sources]
    given = _rows(values.get("given", {}), (*path, "given"), sources, report)
    expect = _rows(values.get("expect", {}), (*path, "expect"), _results(model), report)
    if not expect and "expect" not in values:
        report.key(path, "expect is missing", "it names a step, and the rows that it has to give")
    for name, rows in expect.items():
        if len({frozenset(row) for row in rows}) > 1:
            report.value((*path, "expect", name), "all rows have to name the same columns")
    return Case(str(values.get("name") or f"case {int(path[-1]) + 1}"), given, expect, path)


def _results(model: Model) -> list[str]:
    """Sinks stand for what they write."""
    return [*model.names, *(sink.name for sink in model.sinks if sink.name not in model.names)]


def _rows(values: Any, path: Path, known: Sequence[str], report: Report) -> dict[str, list[Row]]:
    if not isinstance(values, Mapping):
        report.value(path, "this has to be a table of lists of rows")
        return {}
    found: dict[str, list[Row]] = {}
    for name, rows in values.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            report.key((*path, name), "there is no such source or step", hint)
        elif not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            report.value((*path, name), "this has to be a list of rows", "write [{ column = 1 }]")
        else:
            found[name] = rows
    return found


def result_of(model: Model, name: str) -> str:
    """The source or step behind a name that a test expects something of."""
    if name in model.names:
        return name
    return next(sink.source for sink in model.sinks if sink.name == name)


def compare(case: str, step: str, expected: Sequence[Row], found: Sequence[Row]) -> Difference | None:
    """By the columns that the expected rows name; in any order; as often as they are there."""
    columns = sorted(expected[0]) if expected else sorted(found[0]) if found else []
    wanted = Counter(to_key(row, columns) for row in expected)
    given = Counter(to_key(row, columns) for row in found)
    if wanted == given:
        return None
    missing, unexpected = wanted - given, given - wanted
    return Difference(case, step, _shown(missing, columns), _shown(unexpected, columns))


def _shown(rows: Counter[tuple[Any, ...]], columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(shown_row(row, columns) for row in rows.elements()))
