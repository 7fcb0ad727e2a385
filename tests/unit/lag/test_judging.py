"""Judging by what is remembered, also when that is a little older than what is judged."""

from __future__ import annotations

from lowwater.client.group_offsets import Committed
from lowwater.lag.history import History
from lowwater.lag.judging import judge
from lowwater.lag.observation import GroupSeen, Observation, Standing
from lowwater.lag.rules import Status
from lowwater.types import TopicPartition

ONE = TopicPartition("t", 0)


def seen(at_ms: int, offset: int, end: int) -> Observation:
    group = GroupSeen("g", "Empty", "classic", (), {ONE: Committed(offset)})
    return Observation(at_ms, {"g": group}, {ONE: Standing(0, end)})


def test_commits_after_the_last_look_are_not_taken_for_silence() -> None:
    history = History()
    for place in range(5):
        history.take(seen(1_000 * place, 10 * place, 100 - 5 * place + 10 * place))
    later = seen(60_000, 600, 640)
    [found] = judge(later, history).groups["g"].partitions
    assert found.lag == 40
    assert found.status is Status.OK
    assert found.rate_out == 10.0


def test_silence_that_was_looked_at_is_a_stop() -> None:
    history = History()
    for place in range(5):
        history.take(seen(1_000 * place, 10 * place, 100))
    quiet = seen(60_000, 40, 100)
    history.take(quiet)
    [found] = judge(quiet, history).groups["g"].partitions
    assert found.status is Status.STOP
