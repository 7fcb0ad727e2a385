"""Topics that come, grow and go."""

from __future__ import annotations

from collections.abc import Iterable

from tests.sim.groups.client import TopicFacts


class SimTopics:
    """What the coordinator asks of the topics, and what the clients' metadata say."""

    def __init__(self) -> None:
        self.facts: dict[str, TopicFacts] = {}
        self.version = 0
        self._born = 0

    def create(self, name: str, partitions: int) -> None:
        self._born += 1
        self.facts[name] = TopicFacts(self._born.to_bytes(16, "big"), partitions)
        self.version += 1

    def grow(self, name: str, by: int) -> None:
        self.facts[name] = self.facts[name]._replace(partitions=self.facts[name].partitions + by)
        self.version += 1

    def delete(self, name: str) -> None:
        del self.facts[name]
        self.version += 1

    def names(self) -> Iterable[str]:
        return [*self.facts, "__consumer_offsets"]

    def partition_count(self, name: str) -> int | None:
        return self.facts[name].partitions if name in self.facts else None

    def topic_id(self, name: str) -> bytes | None:
        return self.facts[name].id if name in self.facts else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, facts in self.facts.items() if facts.id == topic_id), None)
