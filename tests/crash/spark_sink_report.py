"""What a run with kills of the exactly-once sink says in the end, and the reader that judges it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from tests.fresh import fresh

PARTITIONS = 2
PATIENCE_S = 60


@dataclass(slots=True)
class Report:
    kills: Counter[str] = field(default_factory=Counter)
    zombies: Counter[str] = field(default_factory=Counter)
    """Where drivers were stopped that went on when another one had taken over; or that they ran at once."""
    refused: int = 0
    speculated: Counter[str] = field(default_factory=Counter)
    """Tasks of which two attempts have written, by how the first one went on."""
    failures: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    rows: int = 0
    lost: int = 0
    doubled: int = 0
    strange: int = 0
    written: int = 0
    """Rows in the log, those of aborted transactions too."""
    surprises: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.doubled or self.strange or self.surprises)

    def judge(self, expected: Counter[str], found: Counter[str]) -> None:
        """By rows that are all different."""
        self.rows = expected.total()
        self.lost = (expected - found).total()
        self.strange = len(found.keys() - expected.keys())
        self.doubled = sum(count - 1 for count in found.values())

    def __str__(self) -> str:
        return "\n".join(
            [
                f"kills {self.kills.total()} ({_counts(self.kills)}), {self.seconds:.0f} s",
                f"two drivers at once {self.zombies.total()} (the older one stopped at: {_counts(self.zombies)}), "
                f"refused {self.refused}, calls that failed {self.failures.total()} ({_counts(self.failures)})",
                f"tasks with two attempts that wrote {self.speculated.total()} ({_counts(self.speculated)})",
                f"batches {self.batches}, rows {self.rows}, rows in the log {self.written}",
                f"rows lost {self.lost}, doubled {self.doubled}, strange {self.strange}",
                *self.surprises,
            ]
        )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "none"


def seen(bootstrap: str, topic: str, isolation: str) -> Counter[str]:
    """Values that a client other than ours reads, and how often."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": fresh("oracle"), "enable.auto.commit": False, "log_level": 0,
        "isolation.level": isolation, "enable.partition.eof": True, "fetch.wait.max.ms": 10,
    })  # fmt: skip
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    rows: Counter[str] = Counter()
    at_end: set[int] = set()
    try:
        while len(at_end) < PARTITIONS:
            message = consumer.poll(PATIENCE_S)
            assert message is not None, "the rows that are there come"
            error = message.error()
            if error is None:
                rows[message.value().decode()] += 1
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                at_end.add(message.partition())
    finally:
        consumer.close()
    return rows
