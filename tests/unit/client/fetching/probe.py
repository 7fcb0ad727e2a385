"""Takes what a fetcher gives, and keeps account of it."""

from __future__ import annotations

from typing import Any, TypeVar

from tests.unit.client.fetching.played import PlayedCluster, offsets_in

from lowwater.client.fetching.events import Event, Failed, Fetched
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.flow import Flow
from lowwater.types import TopicPartition

E = TypeVar("E", bound=Event)


class Probe:
    """`rows` has the offsets that came, by partition, in the order in which they were given out."""

    def __init__(self, played: PlayedCluster, starts: dict[TopicPartition, int], **options: Any) -> None:
        self.played = played
        self.fetcher = Fetcher(played.cluster, **options)
        self.rows: dict[TopicPartition, list[int]] = {one: [] for one in starts}
        self.events: list[Event] = []
        self.answers = 0
        self.run(played.cluster.topics({one.topic for one in starts}))
        self.fetcher.add(starts)

    def run(self, coroutine: Any, advance_ms: int = 0) -> Any:
        flow = Flow(coroutine)
        self.played.time.advance(advance_ms)
        return flow.result()

    def wait(self, advance_ms: int = 0) -> None:
        """Let time pass without taking anything."""
        self.played.time.advance(advance_ms)

    def take(self) -> list[Fetched]:
        """Once."""
        taken = self.fetcher.take()
        for each in taken:
            self._note(each)
        return taken

    def drain(self, advance_ms: int = 0) -> None:
        """Take until nothing comes any more, also after that time."""
        self.played.time.advance(0)
        while self.take():
            self.played.time.advance(0)
        if advance_ms:
            self.played.time.advance(advance_ms)
            self.drain()

    def _note(self, fetched: Fetched) -> None:
        self.answers += 1
        assert len(fetched.slices) == len(fetched.positions)
        for one, position in zip(fetched.slices, fetched.positions, strict=True):
            offsets = list(offsets_in(one.records, one.fetch_offset))
            assert offsets, "a slice brings something"
            assert offsets[-1] + 1 == position
            self.rows.setdefault(one.partition, []).extend(offsets)
        self.events += fetched.events
        fetched.release()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def errors(self) -> list[Exception]:
        return [event.error for event in self.of(Failed)]
