"""Commits as the brokers wrote them down: the tail of `__consumer_offsets`, with the time of each.

Whoever may read that topic knows of every commit, also of those that did not move; whoever may not sees what changes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lowwater.client.admin.offsets import Bounds, bounds
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
    """Reads a tail first, and what came since whenever it is asked again: each commit is told once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._told_up_to: dict[str, int] = {}
        """By group, the offset from which on its commits were not told yet."""

    async def commits(self, groups: Mapping[str, int]) -> tuple[LoggedCommit, ...]:
        """New commits of these groups, given with the number of partitions that each has offsets for.

        Nothing when the topic may not be read, or cannot be just now.
        """
        try:
            return await self._new(groups)
        except ClientError:
            return ()

    def forget_others(self, groups: Collection[str]) -> None:
        """There are no groups but these."""
        self._told_up_to = {group: offset for group, offset in self._told_up_to.items() if group in groups}

    async def _new(self, groups: Mapping[str, int]) -> tuple[LoggedCommit, ...]:
        topic = (await self._cluster.present([TOPIC])).get(TOPIC)
        if topic is None or not groups:
            return ()
        homes: dict[TopicPartition, dict[str, int]] = {}
        for group, count in groups.items():
            homes.setdefault(TopicPartition(TOPIC, home_of(group, len(topic.partitions))), {})[group] = count
        found = await bounds(self._cluster, homes)
        rows = await read_rows(self._cluster, {home: self._range(each, homes[home]) for home, each in found.items()})
        return tuple(commit for home, each in rows.items() for commit in self._news(each, homes[home]))

    def _range(self, extent: Bounds, mine: Mapping[str, int]) -> tuple[int, int]:
        """What is new; a tail where there is a group of which nothing was told. Never more than a tail may be."""
        tail = min(max(3 * COMMITS_KEPT * sum(mine.values()), TAIL_MIN), TAIL_MAX)
        for group in mine:
            if self._told_up_to.get(group, 0) > extent.end:
                del self._told_up_to[group]  # another log of the same name
        news = min(self._told_up_to.get(group, extent.end - tail) for group in mine)
        return max(news, extent.end - TAIL_MAX, extent.start), extent.end

    def _news(self, rows: Sequence[Row], mine: Collection[str]) -> list[LoggedCommit]:
        commits = [(row.offset, commit) for row in rows if (commit := _commit(row)) is not None]
        news = [
            commit
            for offset, commit in commits
            if commit.group in mine and offset >= self._told_up_to.get(commit.group, 0)
        ]
        if rows:  # not up to the end: what stands behind an open transaction comes later
            self._told_up_to |= dict.fromkeys(mine, rows[-1].offset + 1)
        return news


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
