"""Where partitions begin and end, and where start positions lead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import tzinfo

from lowwater.client.admin.asking import Appearing
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import BrokerError, ClientError
from lowwater.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, Found, offsets_now, resolve
from lowwater.errors import ConfigError, ErrorCode
from lowwater.positions.grammar import parse_starts
from lowwater.positions.names import check_names
from lowwater.positions.plan import UnresolvedError
from lowwater.positions.position import StartPosition, StartPositions
from lowwater.types import TopicPartition

HIGH_WATERMARK = "read_uncommitted"
"""As isolation: where the log ends, open transactions included."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The log start offset, and the high watermark: the offset that the next record will have."""

    start: int
    end: int

    @property
    def count(self) -> int:
        """Of offsets. There are fewer records where compaction or transactions left gaps."""
        return max(self.end - self.start, 0)


async def bounds(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, Bounds]:
    """Two requests per leader, whatever the number of partitions. A partition that cannot answer does not keep the
    others from doing so, and one without a leader is not waited for."""

    async def attempt(left: list[TopicPartition], left_ms: float) -> dict[TopicPartition, Bounds | ClientError]:
        asked = [dict.fromkeys(left, EARLIEST), dict.fromkeys(left, LATEST)]
        starts, ends = await offsets_now(cluster, asked, left_ms, isolation=HIGH_WATERMARK)
        return appearing.judge({one: _bounds(starts[one], ends[one]) for one in left})

    appearing = Appearing(cluster)
    return await settle(cluster, partitions, attempt)


def _bounds(start: Found | ClientError, end: Found | ClientError) -> Bounds | ClientError:
    for each in (start, end):
        if isinstance(each, ClientError):
            return _not_waited_for(each)
    assert isinstance(start, Found)
    assert isinstance(end, Found)
    return Bounds(start.offset, end.offset)


def _not_waited_for(error: ClientError) -> ClientError:
    if isinstance(error, BrokerError) and error.code == ErrorCode.LEADER_NOT_AVAILABLE:
        error.retriable = False
    return error


async def newest(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Outcomes[TopicPartition, int | None]:
    """The largest timestamp in each partition, None when it is empty. UnsupportedError from brokers before 3.0."""

    async def attempt(left: list[TopicPartition], left_ms: float) -> dict[TopicPartition, int | ClientError | None]:
        [found] = await offsets_now(cluster, [dict.fromkeys(left, MAX_TIMESTAMP)], left_ms, isolation=HIGH_WATERMARK)
        return {one: _timestamp(each) for one, each in found.items()}

    return await settle(cluster, partitions, attempt)


def _timestamp(found: Found | ClientError) -> int | ClientError | None:
    if isinstance(found, ClientError):
        return _not_waited_for(found)
    return found.timestamp_ms if found.offset >= 0 else None


async def offsets_at(
    cluster: Cluster,
    position: str | StartPosition | StartPositions,
    topics: Iterable[str],
    *,
    group: str | None = None,
    zone: tzinfo | None = None,
    now_ms: int | None = None,
) -> dict[TopicPartition, int]:
    """Where a start position leads in every partition of these topics, by one "now"; `stored` needs a group.

    ConfigError for a position that cannot be read, says nothing of a topic, or names another; ClientError where it
    leads nowhere.
    """
    wanted = _wanted(position, zone)
    known = await cluster.topics(topics)
    check_names(wanted, known, "the position")
    wishes = {}
    for one in sorted(TopicPartition(name, each) for name, topic in known.items() for each in topic.partitions):
        wish = wanted.of(one)
        if wish is None:
            raise ConfigError(f"{str(position)!r} does not say where to start in {one.topic!r}")
        wishes[one] = wish
    at_ms = cluster.network.driver.now_ms() if now_ms is None else now_ms
    committed = Coordinator(cluster, group).committed if group is not None else None
    try:
        return (await resolve(cluster, wishes, now_ms=at_ms, committed=committed)).starts
    except UnresolvedError as error:
        raise ClientError(str(error)) from None


def _wanted(position: str | StartPosition | StartPositions, zone: tzinfo | None) -> StartPositions:
    if isinstance(position, StartPositions):
        return position
    if isinstance(position, StartPosition):
        return StartPositions(position)
    return parse_starts(position, zone, "the argument zone")
