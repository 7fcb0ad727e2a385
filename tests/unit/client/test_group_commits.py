"""When offsets are committed, and what a commit that fails means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.client.virtual import VirtualDriver

from lowwater.client.errors import ClientError, CommitError, ConnectError, NotMemberError, RebalancingError
from lowwater.client.flow import Flow
from lowwater.client.group_commits import Committer
from lowwater.errors import ConfigError, ErrorCode
from lowwater.pending import Pending
from lowwater.types import TopicPartition

ONE, TWO = TopicPartition("t", 0), TopicPartition("t", 1)
GONE = NotMemberError(ErrorCode.ILLEGAL_GENERATION)


class Group:
    """Where commits go. `failing` are the outcomes of the next ones; `gates` holds them up."""

    def __init__(self, **how: Any) -> None:
        self.driver = VirtualDriver(lambda _: None)
        self.commits: list[dict[TopicPartition, Any]] = []
        self.retried: list[bool] = []
        self.failing: list[ClientError | None] = []
        self.gates: list[Pending[None]] = []
        self.is_slow = False
        self.committer = Committer(self.commit, self.driver, **how)

    async def commit(
        self, offsets: Mapping[TopicPartition, Any], *, timeout_ms: float | None = None, is_retried: bool = True
    ) -> None:
        self.commits.append(dict(offsets))
        self.retried.append(is_retried)
        failure = self.failing.pop(0) if self.failing else None
        if self.is_slow:
            self.gates.append(Pending())
            await self.gates[-1]
        if failure is not None:
            raise failure

    def do(self, coroutine: Any) -> None:
        flow = Flow(coroutine)
        self.driver.time.advance(0)
        flow.result()

    def advance(self, ms: int) -> None:
        self.driver.time.advance(ms)


def test_nothing_is_committed_before_it_is_asked_for_without_an_interval() -> None:
    group = Group()
    group.committer.done({ONE: 5})
    group.advance(600_000)
    assert group.commits == []
    group.do(group.committer.flush())
    assert group.commits == [{ONE: 5}]


def test_given_offsets_are_committed_and_nothing_else() -> None:
    group = Group()
    group.committer.done({ONE: 5, TWO: 6})
    group.do(group.committer.commit({ONE: 3}))
    assert group.commits == [{ONE: 3}]
    group.do(group.committer.flush())
    assert group.commits == [{ONE: 3}, {TWO: 6}]


def test_what_is_done_is_committed_at_intervals_and_only_once() -> None:
    group = Group(interval_ms=5_000)
    group.committer.done({ONE: 5})
    group.advance(4_999)
    assert group.commits == []
    group.committer.done({ONE: 7, TWO: 1})
    group.advance(1)
    assert group.commits == [{ONE: 7, TWO: 1}]
    group.committer.done({ONE: 7, TWO: 2})
    group.advance(60_000)
    assert group.commits == [{ONE: 7, TWO: 1}, {TWO: 2}]


def test_a_rewind_is_committed_too() -> None:
    group = Group(interval_ms=5_000)
    for offset in (5, 3):
        group.committer.done({ONE: offset})
        group.advance(5_000)
    assert group.commits == [{ONE: 5}, {ONE: 3}]


def test_partitions_that_go_are_committed_before_and_forgotten() -> None:
    group = Group(interval_ms=5_000)
    group.committer.done({ONE: 5, TWO: 6})
    group.do(group.committer.give_up([ONE]))
    assert group.commits == [{ONE: 5}]
    group.advance(5_000)
    assert group.commits == [{ONE: 5}, {TWO: 6}]
    group.committer.done({ONE: 5})
    group.advance(5_000)
    assert group.commits[-1] == {ONE: 5}, "who has it again commits it again"


def test_partitions_that_go_are_not_committed_when_the_caller_commits_by_itself() -> None:
    group = Group()
    group.committer.done({ONE: 5})
    group.do(group.committer.give_up([ONE]))
    group.do(group.committer.flush())
    assert group.commits == []


def test_partitions_that_are_lost_are_not_committed() -> None:
    group = Group(interval_ms=5_000)
    group.committer.done({ONE: 5, TWO: 6})
    group.committer.forget([ONE])
    group.advance(5_000)
    assert group.commits == [{TWO: 6}]


def test_the_last_commit_is_made_at_the_end() -> None:
    group = Group(interval_ms=5_000)
    group.committer.done({ONE: 5})
    group.do(group.committer.close())
    assert group.commits == [{ONE: 5}]
    group.committer.done({ONE: 6})
    group.advance(60_000)
    assert group.commits == [{ONE: 5}]


def test_the_end_commits_nothing_by_itself_when_the_caller_commits() -> None:
    group = Group()
    group.committer.done({ONE: 5})
    group.do(group.committer.close())
    assert group.commits == []


def test_a_commit_does_not_overtake_the_one_before() -> None:
    group = Group(interval_ms=1_000)
    group.is_slow = True
    group.committer.done({ONE: 5})
    group.advance(1_000)
    group.committer.done({ONE: 9})
    flush = Flow(group.committer.flush())
    assert group.commits == [{ONE: 5}]
    group.gates[0].resolve(None)
    assert group.commits == [{ONE: 5}, {ONE: 9}]
    assert not flush.done
    group.gates[1].resolve(None)
    assert flush.done


def test_a_flush_that_is_given_up_makes_room_for_the_next() -> None:
    group = Group()
    group.is_slow = True
    group.committer.done({ONE: 5})
    Flow(group.committer.flush()).cancel()
    group.is_slow = False
    group.do(group.committer.flush())
    assert group.commits == [{ONE: 5}, {ONE: 5}]


# ---- what a failure means


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ConfigError, match="retry, raise, continue"):
        Group(on_failure="ignore")


@pytest.mark.parametrize(("policy", "is_retried"), [("retry", True), ("raise", False), ("continue", False)])
def test_only_the_policy_retry_tries_again(policy: str, is_retried: bool) -> None:
    group = Group(on_failure=policy)
    group.committer.done({ONE: 5})
    group.do(group.committer.flush())
    assert group.retried == [is_retried]


@pytest.mark.parametrize("policy", ["retry", "raise"])
def test_a_commit_that_was_asked_for_raises(policy: str) -> None:
    group = Group(on_failure=policy)
    group.failing = [ConnectError("down")]
    group.committer.done({ONE: 5})
    with pytest.raises(ConnectError):
        group.do(group.committer.flush())
    assert group.committer.failures == 1


@pytest.mark.parametrize("policy", ["retry", "raise"])
def test_a_commit_in_the_background_raises_at_the_next_look(policy: str) -> None:
    group = Group(on_failure=policy, interval_ms=1_000)
    group.failing = [ConnectError("down")]
    group.committer.done({ONE: 5})
    group.advance(1_000)
    with pytest.raises(ConnectError):
        group.committer.check()
    group.committer.check()
    group.advance(1_000)
    assert group.commits == [{ONE: 5}, {ONE: 5}], "and is tried again with the next"


def test_going_on_counts_failures_and_commits_the_same_next_time() -> None:
    group = Group(on_failure="continue", interval_ms=1_000)
    group.failing = [ConnectError("down"), ConnectError("still down")]
    group.committer.done({ONE: 5})
    group.advance(1_000)
    group.do(group.committer.flush())
    group.committer.check()
    assert group.committer.failures == 2
    assert str(group.committer.last_failure) == "still down"
    group.advance(1_000)
    assert group.commits == [{ONE: 5}] * 3


def test_of_a_commit_that_failed_in_part_only_the_rest_is_committed_again() -> None:
    group = Group(on_failure="continue")
    group.failing = [CommitError({TWO: ConnectError("down")}, [ONE])]
    group.committer.done({ONE: 5, TWO: 6})
    group.do(group.committer.flush())
    group.do(group.committer.flush())
    assert group.commits == [{ONE: 5, TWO: 6}, {TWO: 6}]


@pytest.mark.parametrize("error", [GONE, RebalancingError(ErrorCode.REBALANCE_IN_PROGRESS), CommitError({ONE: GONE})])
def test_partitions_that_went_to_others_are_no_reason_to_stop_reading(error: ClientError) -> None:
    group = Group(interval_ms=1_000)
    group.failing = [error]
    group.committer.done({ONE: 5})
    group.do(group.committer.give_up([ONE]))
    group.committer.check()
    assert group.committer.failures == 1


def test_they_are_one_for_who_wants_to_hear_of_every_failure() -> None:
    group = Group(interval_ms=1_000, on_failure="raise")
    group.failing = [GONE]
    group.committer.done({ONE: 5})
    group.do(group.committer.give_up([ONE]))
    with pytest.raises(NotMemberError):
        group.committer.check()


def test_partitions_go_also_when_their_commit_fails() -> None:
    group = Group(interval_ms=1_000)
    group.failing = [ConnectError("down")]
    group.committer.done({ONE: 5})
    group.do(group.committer.give_up([ONE]))
    group.advance(60_000)
    assert group.commits == [{ONE: 5}]
