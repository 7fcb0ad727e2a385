"""Commits as the brokers wrote them down: the tail of `__consumer_offsets`, with the time of each.

Whoever may read that topic knows of every commit, also of those that did not move; whoever may not sees what changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lowwater.client.admin.offsets import bounds
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.read_rows import read_rows
from lowwater.client.rows import Row
from lowwater.errors import WireError
from lowwater.groups.records import read_offset_key, read_offset_value
from lowwater.lag.history import COMMITS_KEPT
from lowwater.lag.observation import LoggedCommit
from lowwater.types import TopicPartition

TOPIC = "__consumer_offsets"
TAIL_MIN, TAIL_MAX = 1_000, 20_000
_OFFSET_KEYS = (b"\0\0", b"\0\1")


def home_of(group: str, partitions: int) -> int:
    """The partition of the topic in which a group's commits stand: by Java's hash of its name."""
    text = group.encode("utf-16-be")
    found = 0
    for place in range(0, len(text), 2):
        found = (31 * found + (text[place] << 8 | text[place + 1])) & 0xFFFFFFFF
    return (found & 0x7FFFFFFF) % partitions


class CommitLog:
    """Reads a tail first, and what came since whenever it is asked again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._read_up_to: dict[TopicPartition, int] = {}
        self._groups: set[str] = set()

    async def commits(self, groups: Mapping[str, int]) -> tuple[LoggedCommit, ...]:
        """New commits of these groups, given with the number of partitions that each has offsets for.

        Nothing when the topic may not be read, or cannot be just now.
        """
        if not groups.keys() <= self._groups:
            self._read_up_to.clear()  # what was passed over before is wanted now
            self._groups |= groups.keys()
        try:
            return await self._new(groups)
        except ClientError:
            return ()

    async def _new(self, groups: Mapping[str, int]) -> tuple[LoggedCommit, ...]:
        topic = (await self._cluster.present([TOPIC])).get(TOPIC)
        if topic is None or not groups:
            return ()
        wanted: dict[TopicPartition, int] = {}
        for group, count in groups.items():
            home = TopicPartition(TOPIC, home_of(group, len(topic.partitions)))
            wanted[home] = wanted.get(home, 0) + count
        found = await bounds(self._cluster, wanted)
        ranges = {}
        for home, each in found.items():
            tail = min(max(3 * COMMITS_KEPT * wanted[home], TAIL_MIN), TAIL_MAX)
            ranges[home] = (max(self._read_up_to.get(home, each.end - tail), each.start), each.end)
        rows = await read_rows(self._cluster, ranges)
        for home in rows:
            self._read_up_to[home] = ranges[home][1]
        return tuple(commit for each in rows.values() for commit in _commits(each, groups))


def _commits(rows: Iterable[Row], groups: Mapping[str, int]) -> Iterable[LoggedCommit]:
    for row in rows:
        commit = _commit(row)
        if commit is not None and commit.group in groups:
            yield commit


def _commit(row: Row) -> LoggedCommit | None:
    if row.key is None or row.key[:2] not in _OFFSET_KEYS:
        return None
    try:
        group, topic, partition = read_offset_key(row.key)
        one = TopicPartition(topic, partition)
        if row.value is None:
            return LoggedCommit(group, one, row.timestamp_ms, None)
        value = read_offset_value(row.value)
    except WireError:  # written by a version that is not known here
        return None
    return LoggedCommit(group, one, value.commit_timestamp, value.offset, value.topic_id)
