"""What became of a run: how it ended, and what each query did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lowwater.spark.pipeline.failures import ExitCode, Failure


class Outcome(Enum):
    DONE = "done"
    STOPPED = "stopped"  # after a finished micro-batch
    CUT_OFF = "cut off"  # in the middle of one, which will be run again
    FAILED = "failed"


_CODES = {Outcome.DONE: ExitCode.DONE, Outcome.STOPPED: ExitCode.STOPPED, Outcome.CUT_OFF: ExitCode.FAILED}


@dataclass(frozen=True, slots=True)
class QuerySummary:
    """`rows` came in. `bad_rows` could not be decoded, by source."""

    name: str
    batches: int = 0
    rows: int = 0
    bad_rows: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    name: str
    outcome: Outcome
    queries: tuple[QuerySummary, ...]
    seconds: float

    @property
    def rows(self) -> int:
        """Of the sinks' queries together."""
        return sum(query.rows for query in self.queries)

    @property
    def failure(self) -> Failure | None:
        return next((query.failure for query in self.queries if query.failure is not None), None)

    @property
    def exit_code(self) -> ExitCode:
        return self.failure.exit_code if self.failure is not None else _CODES[self.outcome]
