"""Reading as kafkars does it: code written for `from kafkars import ConsumerManager, SourceTopic` runs unchanged.

manager = ConsumerManager({"bootstrap.servers": "localhost:9092"}, [SourceTopic.from_earliest("orders")])
while not manager.is_live():
    batch = manager.poll(timeout_ms=1000)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from types import TracebackType
from typing import Any, Self, Unpack, cast

from lowwater.client.arguments import listed, refused, whole_number
from lowwater.client.asked import Asked, ReadOptions, SharedOptions, ask
from lowwater.client.async_reader import AsyncReader
from lowwater.client.loading import load
from lowwater.client.reader import Reader
from lowwater.client.reader_state import ARROW, POLL_MS, ReaderState
from lowwater.client.wanted import ZONE_OPTION, ago, at_time, zone_of
from lowwater.errors import ConfigError
from lowwater.positions.grammar import parse_start
from lowwater.positions.position import Earliest, Latest, StartPosition, Stored
from lowwater.types import TopicPartition

_ROWS_TOO_MANY = 2**31
_POLICIES = ("latest", "earliest", "committed", "relative_time", "absolute_time", "position")


@dataclass
class SourceTopic:
    """A topic, and from where it is read. `time_ms`: how long ago, or since 1970, as the policy says."""

    name: str
    policy: str = "latest"
    time_ms: int | None = None
    position: str | None = None

    @staticmethod
    def from_latest(name: str) -> SourceTopic:
        """Only what is written from now on."""
        return SourceTopic(name, "latest")

    @staticmethod
    def from_earliest(name: str) -> SourceTopic:
        """Everything that is still there."""
        return SourceTopic(name, "earliest")

    @staticmethod
    def from_committed(name: str) -> SourceTopic:
        """Where the group (`group.id`) left off; from the beginning where it never was."""
        return SourceTopic(name, "committed")

    @staticmethod
    def from_relative_time(name: str, time_ms: int) -> SourceTopic:
        """What is younger than so many milliseconds."""
        ago(_whole_ms(time_ms))
        return SourceTopic(name, "relative_time", time_ms)

    @staticmethod
    def from_absolute_time(name: str, time_ms: int) -> SourceTopic:
        """What is stamped at that time, in milliseconds since 1970, or later."""
        at_time(_whole_ms(time_ms))
        return SourceTopic(name, "absolute_time", time_ms)

    @staticmethod
    def from_position(name: str, position: str) -> SourceTopic:
        """Any start position: `-1h`, `stored|-1h`, `@2026-11-01T00:00Z`, `17`, … The manager's `zone` is that of dates
        that name none."""
        _parsed(position, UTC)  # whether it can be read at all
        return SourceTopic(name, "position", position=position)

    @property
    def start(self) -> StartPosition:
        """ConfigError when the policy is not known, or lacks its time, or its time is none."""
        return self.start_in(None)

    def start_in(self, zone: str | tzinfo | None) -> StartPosition:
        """The same; dates that name no zone, and days, are those of this one."""
        match self.policy:
            case "latest":
                return StartPosition((Latest(),))
            case "earliest":
                return StartPosition((Earliest(),))
            case "committed":
                return StartPosition((Stored(), Earliest()))
            case "position" if self.position is not None:
                return _parsed(self.position, zone)
            case "relative_time" | "absolute_time" if self.time_ms is not None:
                time_ms = _whole_ms(self.time_ms)
                return StartPosition((ago(time_ms) if self.policy == "relative_time" else at_time(time_ms),))
        if self.policy in _POLICIES:
            raise ConfigError(f"the policy {self.policy} of {self.name} needs time_ms")
        raise ConfigError(f"unknown policy {self.policy!r} of {self.name}; there are {', '.join(_POLICIES)}")


def _whole_ms(time_ms: int) -> int:
    return whole_number("time_ms", time_ms, "a whole number of milliseconds (from_position takes '-1h')")


def _parsed(position: str, zone: str | tzinfo | None) -> StartPosition:
    if not isinstance(position, str):
        raise refused("position", "text, '-1h' or '17'", position)
    return parse_start(position, zone_of(zone), ZONE_OPTION)


class _Managing:
    """What both kinds of managers tell, by kafkars' names."""

    _reader: ReaderState

    def is_live(self) -> bool:
        """Whether everything that was there at the beginning was returned."""
        return self._reader.is_live

    def held_message_count(self) -> int:
        """Rows that came and wait to be in order."""
        return self._reader.stats.held_rows

    def paused_partition_count(self) -> int:
        """Partitions that are ahead, and wait for the others."""
        return self._reader.stats.paused_partitions

    def get_priming_watermark(self) -> int | None:
        """The low-water mark in milliseconds since 1970: what is stamped later waits. None when there is none."""
        return self._reader.mark_ms

    def partition_state(self) -> Any:
        """A pyarrow.RecordBatch with a row for each partition: where it began, ended, and is."""
        return load(ARROW).partition_states(self._reader.progress())

    @property
    def reader(self) -> Any:
        """The Reader behind this, for all that it can do besides."""
        return self._reader


class ConsumerManager(_Managing):
    """Reads topics in the order of time across all their partitions.

    As with kafkars, a `group.id` in the config is only where `from_committed` looks and `commit` writes; to share the
    partitions with others and to commit by itself, say group=…. Further options are those of `lowwater.read`.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        topics: Iterable[SourceTopic],
        batch_size: int | None = None,
        cutoff_ms: int | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self._reader: Reader = Reader.asked_for(_asked(config, topics, batch_size, cutoff_ms, options))

    def poll(self, timeout_ms: float = POLL_MS) -> Any:
        """The next rows as a pyarrow.RecordBatch, which has none when none came in time."""
        return load(ARROW).with_plain_topics(self._reader.poll(timeout_ms))

    def __iter__(self) -> Iterator[Any]:
        """Batches with rows in them, for ever or up to the stop."""
        return map(load(ARROW).with_plain_topics, self._reader)

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit to the group what was returned so far; or these offsets, each the next one to read."""
        self._reader.commit(offsets)

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._reader.__exit__(kind, error, at)


class AsyncConsumerManager(_Managing):
    """The same for asyncio: `async with AsyncConsumerManager(config, topics) as manager: await manager.poll(1000)`."""

    def __init__(
        self,
        config: Mapping[str, object],
        topics: Iterable[SourceTopic],
        batch_size: int | None = None,
        cutoff_ms: int | None = None,
        **options: Unpack[SharedOptions],
    ) -> None:
        self._reader: AsyncReader = AsyncReader.asked_for(_asked(config, topics, batch_size, cutoff_ms, options))

    async def poll(self, timeout_ms: float = POLL_MS) -> Any:
        """The next rows as a pyarrow.RecordBatch, which has none when none came in time."""
        return load(ARROW).with_plain_topics(await self._reader.poll(timeout_ms))

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for batch in self._reader:
            yield load(ARROW).with_plain_topics(batch)

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit to the group what was returned so far; or these offsets, each the next one to read."""
        await self._reader.commit(offsets)

    async def close(self) -> None:
        await self._reader.close()

    async def __aenter__(self) -> Self:
        await self._reader.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._reader.__aexit__(kind, error, at)


def _check_size(batch_size: int) -> None:
    """The cutoff stood in the third place before kafkars 0.0.8 did without."""
    if batch_size >= _ROWS_TOO_MANY:
        raise ConfigError(f"batch_size is a number of rows, not {batch_size}; was cutoff_ms={batch_size} meant?")


def _asked(
    config: Mapping[str, object],
    topics: Iterable[SourceTopic],
    batch_size: int | None,
    cutoff_ms: int | None,
    options: SharedOptions,
) -> Asked:
    given = cast(ReadOptions, {"cutoff": cutoff_ms, **options, "config": config})
    if batch_size is not None:
        _check_size(whole_number("batch_size", batch_size))
        given["batch_size"] = batch_size
    sources = listed("topics", SourceTopic, "SourceTopic.from_earliest('orders')", topics)
    asked = ask({topic.name: topic.start_in(given.get("zone")) for topic in sources}, **given)
    if "group" in options:
        return asked
    commits = asked.config.is_given("enable.auto.commit") and asked.config.commits_by_itself
    return replace(asked, options=replace(asked.options, joins=False, resumes=False, commits=commits))
