"""Where commits of a group stand, and who commits."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.client.test_admin import World
from tests.unit.client.virtual import Asked

from lowwater.client.group_offsets import Committed
from lowwater.errors import ErrorCode
from lowwater.groups.records import offset_key, offset_value
from lowwater.lag.commit_log import TAIL_MAX, TAIL_MIN, TOPIC, CommitLog, home_of
from lowwater.lag.owners import checkpoint_rules, lineages_of
from lowwater.spark.commits import note
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchResponse, ListOffsetsResponse
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.records import Record, build_batch

LATEST, BATCH = -1, 5_000


class Log:
    """The topic with one partition, and what stands in it: of each commit the group and the offset."""

    def __init__(self) -> None:
        self.commits: list[tuple[str, int]] = []
        self.stable: int | None = None
        self.may_be_read = True
        self.world = World(ListOffsets=self._bounds, Fetch=self._records)
        self.world.leaders = {TOPIC: [1]}
        self.log = CommitLog(self.world.cluster)
        self._fetched = 0

    def news(self, *groups: str) -> list[tuple[str, int | None]]:
        found = self.world.do(self.log.commits(dict.fromkeys(groups, 1)))
        return [(each.group, each.offset) for each in found]

    def fetched(self) -> list[int]:
        """From where on, since the last time."""
        offsets = [each.request.topics[0].partitions[0].fetch_offset for each in self.world.asked("Fetch")]
        new, self._fetched = offsets[self._fetched :], len(offsets)
        return new

    def _bounds(self, asked: Asked) -> Any:
        [topic] = asked.request.topics
        offset = len(self.commits) if topic.partitions[0].timestamp == LATEST else 0
        found = [ListOffsetsPartitionResponse(partition_index=0, offset=offset)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=found)])

    def _records(self, asked: Asked) -> Any:
        [topic] = asked.request.topics
        at, end = topic.partitions[0].fetch_offset, len(self.commits)
        stable = end if self.stable is None else self.stable
        rows = [
            Record(place, place, offset_key(group, "t", 0), offset_value(offset, -1, "", place))
            for place, (group, offset) in enumerate(self.commits[at : min(at + BATCH, stable)], at)
        ]
        data = PartitionData(
            partition_index=0,
            error_code=0 if self.may_be_read else ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            high_watermark=end,
            last_stable_offset=stable,
            log_start_offset=0,
            records=bytes(build_batch(rows)) if rows else b"",
        )
        return FetchResponse(responses=[FetchableTopicResponse(topic_id=topic.topic_id, partitions=[data])])


def test_a_commit_is_told_once_also_when_another_group_comes() -> None:
    log = Log()
    log.commits = [("a", 1), ("b", 2), ("a", 3)]
    assert log.news("a") == [("a", 1), ("a", 3)]
    assert log.news("a", "b") == [("b", 2)]
    assert log.news("a", "b", "c") == []
    log.commits += [("c", 4), ("b", 5), ("a", 6)]
    assert log.news("a") == [("a", 6)]
    assert log.news("a", "b", "c") == [("c", 4), ("b", 5)]


def test_of_what_came_since_no_more_is_read_than_of_a_tail() -> None:
    log = Log()
    log.commits = [("a", place) for place in range(2 * TAIL_MIN)]
    assert len(log.news("a")) == TAIL_MIN
    log.commits += [("a", place) for place in range(TAIL_MAX + 5 * TAIL_MIN)]
    log.fetched()
    assert len(log.news("a")) == TAIL_MAX
    assert log.fetched()[0] == len(log.commits) - TAIL_MAX


def test_what_stands_behind_an_open_transaction_is_told_later() -> None:
    log = Log()
    log.commits, log.stable = [("a", 1), ("a", 2), ("a", 3)], 1
    assert log.news("a") == [("a", 1)]
    log.stable = None
    assert log.news("a") == [("a", 2), ("a", 3)]


def test_a_log_that_may_not_be_read_tells_nothing_and_all_when_it_may() -> None:
    log = Log()
    log.commits, log.may_be_read = [("a", 1)], False
    assert log.news("a") == []
    log.may_be_read = True
    assert log.news("a") == [("a", 1)]


def test_a_log_that_was_made_anew_is_read_anew() -> None:
    log = Log()
    log.commits = [("a", 1), ("a", 2)]
    log.news("a")
    log.commits = [("a", 3)]
    assert log.news("a") == [("a", 3)]


def test_groups_that_are_not_there_any_more_are_forgotten() -> None:
    log = Log()
    log.commits = [("a", 1), ("b", 2)]
    log.news("a", "b")
    log.log.forget_others(["b"])
    assert list(log.log._told_up_to) == ["b"]


# As Java has it: Math.abs("…".hashCode()) % 50, with its care for the smallest number.
@pytest.mark.parametrize(
    ("group", "hash_code"),
    [("", 0), ("a", 97), ("billing", -109829509), ("polygenelubricants", -(1 << 31)),
     ("\U0001f600", 1772899)],
)  # fmt: skip
def test_the_home_of_a_group_is_by_the_hash_of_java(group: str, hash_code: int) -> None:
    assert home_of(group, 50) == (hash_code & 0x7FFFFFFF) % 50
    assert home_of(group, 1) == 0


def test_spark_jobs_are_known_by_what_they_write_beside_their_offsets() -> None:
    committed = {
        TopicPartition("orders", 0): Committed(5, metadata=note("0a1b2c3d")),
        TopicPartition("orders", 1): Committed(5, metadata=note("00000000")),
        TopicPartition("orders", 2): Committed(5, metadata="lowwater: a note"),
    }
    assert lineages_of(committed) == ("00000000", "0a1b2c3d")
    assert lineages_of({}) == ()
    assert "lowwater pipeline reset" in checkpoint_rules("g", ("0a1b2c3d",))
