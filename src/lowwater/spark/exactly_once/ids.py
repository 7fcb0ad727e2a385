"""Transactional ids of a sink's tasks: sink-batch-task-attempt-commits.epoch.

The last part says by which plan a task writes: how many commits the sink had then, and the epoch of whoever planned. A
task of an older driver never has the id of a newer one's, so that it cannot end the newer one's transaction.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from lowwater.spark.exactly_once.state import SinkState

SINK_ID_MAX = 200
_SINK_ID = re.compile(rf"[^\s\x00-\x1f\x7f]{{1,{SINK_ID_MAX}}}")


def sink_id_problem(text: str) -> str | None:
    if _SINK_ID.fullmatch(text):
        return None
    return f"has 1 to {SINK_ID_MAX} characters, none of them white space"


def transactional_id(sink: str, batch: int, task: int, attempt: int, *, commits: int, epoch: int) -> str:
    return f"{sink}-{batch}-{task}-{attempt}-{commits}.{epoch}"


def left_over(sink: str, state: SinkState, open_ids: Iterable[str], keep: Collection[str]) -> list[str]:
    """Of transactions that are open, those of this sink that nobody will commit.

    Tasks planned before the last intent are over: only its own transactions are committed, and `keep` are those.
    """
    pattern = re.compile(rf"{re.escape(sink)}-\d+-\d+-\d+-(\d+)\.\d+")
    found = ((each, pattern.fullmatch(each)) for each in open_ids if each not in keep)
    return [each for each, match in found if match is not None and int(match[1]) < state.commits]
