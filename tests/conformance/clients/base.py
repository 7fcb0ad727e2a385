"""The one face that the behaviour suite sees of every client library.

A driver says by `can` what its library is able to do; the suite asks nothing else of it. Drivers translate the
library's own exceptions to `ClientError`, so that one expectation fits all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, ClassVar

from lowwater.errors import ErrorCode

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
REQUEST_BYTES_MAX = 2_000_000
TIMEOUT_S = 30

EARLIEST = -2
LATEST = -1
MAX_TIMESTAMP = -3


class Can(Enum):
    """What a client library may or may not be able to do."""

    REPORT_OFFSETS = auto()  # a produce call tells the offsets
    STAMP = auto()  # the application chooses a record's timestamp
    HEADERS = auto()
    NULL_HEADERS = auto()  # a header without a value
    HEADER_ORDER = auto()  # repeated header names keep their places among the others
    NULL_VALUES = auto()
    EMPTY_KEYS = auto()
    BARE_EMPTY_VALUES = auto()  # an empty value without a key
    IDEMPOTENCE = auto()
    TELL_TIMESTAMP_TYPE = auto()
    OFFSETS_FOR_TIMES = auto()
    MAX_TIMESTAMP_OFFSET = auto()
    CREATE_TOPICS = auto()
    DELETE_TOPICS = auto()
    LIST_TOPICS = auto()
    DESCRIBE_TOPICS = auto()
    CREATE_PARTITIONS = auto()
    DESCRIBE_CONFIGS = auto()
    ALTER_CONFIGS = auto()
    INCREMENTAL_ALTER_CONFIGS = auto()
    DELETE_RECORDS = auto()
    DESCRIBE_CLUSTER = auto()
    DESCRIBE_LOG_DIRS = auto()
    DESCRIBE_PRODUCERS = auto()
    DESCRIBE_QUORUM = auto()
    DESCRIBE_FEATURES = auto()
    ELECT_LEADERS = auto()
    LIST_CONFIG_RESOURCES = auto()
    DESCRIBE_TOPIC_PARTITIONS = auto()
    CLIENT_QUOTAS = auto()


class ClientError(Exception):
    """The broker's refusal, as the library reported it."""

    def __init__(self, code: int | ErrorCode, detail: str = "") -> None:
        self.code = ErrorCode(code)
        super().__init__(f"{self.code.name}: {detail}")


@dataclass(frozen=True, slots=True)
class Record:
    """What an application sends. Without a timestamp the client stamps the record."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Received:
    """What an application gets. `timestamp_type` is "create" or "append", or None where the library hides it."""

    offset: int
    record: Record
    timestamp_type: str | None = None


@dataclass(frozen=True, slots=True)
class OffsetAt:
    """A look-up's answer; -1 means that there is no such record. `timestamp_ms` is None where the library hides it."""

    offset: int
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    cluster_id: str | None
    controller: int
    nodes: dict[int, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    value: str | None
    is_default: bool
    read_only: bool
    sensitive: bool


@dataclass(frozen=True, slots=True)
class ProducerInfo:
    producer_id: int
    epoch: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Producing:
    """How to send: everything that the suite varies of a producer."""

    codec: str = "none"
    idempotent: bool = False
    acks: str = "all"


PLAINLY = Producing()


@dataclass(slots=True)
class Driver(ABC):
    """One client library, connected to one broker for the length of a test session."""

    name: ClassVar[str]
    peer: ClassVar[str]
    can: ClassVar[frozenset[Can]]

    bootstrap: str
    state: dict[Any, Any] = field(default_factory=dict)

    @abstractmethod
    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        """Send and wait for the acknowledgements. Offsets where the library reports them; else, and with acks=0, []."""

    @abstractmethod
    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        """`count` records from `start` (an offset, EARLIEST or LATEST) on. TimeoutError when they do not come."""

    @abstractmethod
    def close(self) -> None: ...

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        """The offset for a timestamp, or for EARLIEST, LATEST, MAX_TIMESTAMP."""
        raise self._cannot("look up offsets")

    def create_topic(
        self, topic: str, *, partitions: int = 1, replication: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        raise self._cannot("create topics")

    def delete_topic(self, topic: str) -> None:
        raise self._cannot("delete topics")

    def list_topics(self) -> set[str]:
        raise self._cannot("list topics")

    def describe_topic(self, topic: str) -> dict[int, PartitionInfo]:
        raise self._cannot("describe topics")

    def create_partitions(self, topic: str, total: int) -> None:
        raise self._cannot("create partitions")

    def describe_config(self, kind: str, name: str) -> dict[str, ConfigEntry]:
        """`kind` is "topic" or "broker"."""
        raise self._cannot("describe configs")

    def alter_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Replace all of a topic's own settings (AlterConfigs)."""
        raise self._cannot("alter configs")

    def change_config(self, topic: str, *, set_to: Mapping[str, str], delete: Sequence[str] = ()) -> None:
        """Change some of a topic's own settings (IncrementalAlterConfigs)."""
        raise self._cannot("change configs")

    def delete_records(self, topic: str, before: int, *, partition: int = 0) -> int:
        """Delete the records below `before` (-1: all); the new log start offset."""
        raise self._cannot("delete records")

    def describe_cluster(self) -> ClusterInfo:
        raise self._cannot("describe the cluster")

    def log_dir_sizes(self, topic: str) -> dict[int, int]:
        """Bytes on disk by partition."""
        raise self._cannot("describe log dirs")

    def describe_producers(self, topic: str, *, partition: int = 0) -> list[ProducerInfo]:
        raise self._cannot("describe producers")

    def quorum_leader(self) -> int:
        raise self._cannot("describe the quorum")

    def features(self) -> dict[str, tuple[int, int]]:
        """Finalised features with their lowest and highest level."""
        raise self._cannot("describe features")

    def elect_leader(self, topic: str, *, partition: int = 0) -> None:
        """Ask for the preferred leader; ClientError(ELECTION_NOT_NEEDED) when it leads already."""
        raise self._cannot("elect leaders")

    def config_resources(self) -> dict[str, set[str]]:
        """Names of all resources that have settings, by lower-case kind."""
        raise self._cannot("list config resources")

    def describe_topic_partitions(self, topic: str) -> dict[int, PartitionInfo]:
        raise self._cannot("page through partitions")

    def quotas(self, user: str) -> dict[str, float]:
        raise self._cannot("describe quotas")

    def set_quota(self, user: str, name: str, value: float | None) -> None:
        raise self._cannot("alter quotas")

    def _cannot(self, what: str) -> AssertionError:
        return AssertionError(f"{self.name} cannot {what}: its `can` and this test disagree")
