"""What the broker knows durably: topics, settings, quotas, levels of features, producer ids, its cluster.

The state is only written by replaying records, live as at recovery; records come from `change`.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from lowwater.broker.answer_cache import AnswerCache
from lowwater.broker.changes import Changes, Decision
from lowwater.broker.features import Features
from lowwater.broker.log_config import log_config
from lowwater.broker.metadata_log import MetadataLog
from lowwater.broker.metadata_records import (
    BrokerConfigured,
    ClusterNamed,
    FeatureLevelSet,
    GroupConfigured,
    PartitionsAdded,
    ProducerIdsReserved,
    QuotaEntity,
    QuotaSet,
    Record,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
)
from lowwater.broker.topic import OpenPartition, Topic
from lowwater.config import BrokerConfig, TopicConfig, check_topic_settings
from lowwater.errors import ApiError, ConfigError, ErrorCode
from lowwater.log.config import LogConfig
from lowwater.pending import Pending
from lowwater.ports import Disk, Ids, Offload
from lowwater.types import topic_name_problem

T = TypeVar("T")

PRODUCER_ID_BLOCK = 1000
REWRITE_RECORDS_MIN = 1000
SHARED_CONFIGS_MAX = 1000


class Topics:
    """The registry. Reads are plain calls; writes are decided here or by a handler and go through `change`."""

    def __init__(
        self, log: MetadataLog, config: BrokerConfig, ids: Ids, offload: Offload, open_partition: OpenPartition
    ) -> None:
        self._log = log
        self._ids = ids
        self._open_partition = open_partition
        self._changes = Changes(log, offload, self._replay)
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}
        self._by_flat_name: dict[str, set[str]] = {}
        self._deleted: set[bytes] = set()
        self._configs: dict[frozenset[tuple[str, str]], tuple[TopicConfig, LogConfig]] = {}
        self._altered: dict[str, dict[str, str]] = {}
        self._next_producer_id = 0
        self._producer_ids_end = 0
        self.config = config
        self.features = Features()
        self.quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.group_configs: dict[str, dict[str, str]] = {}
        self.cluster_id = ""
        self.version = 0
        self.answers = AnswerCache()
        self.on_deleted: list[Callable[[Topic], None]] = []
        self._apply: dict[type[Record], Callable[[Any], None]] = {
            ClusterNamed: self._apply_cluster,
            TopicCreated: self._apply_created,
            TopicDeleted: self._apply_deleted,
            PartitionsAdded: self._apply_partitions,
            TopicConfigured: self._apply_topic_config,
            BrokerConfigured: self._apply_broker_config,
            GroupConfigured: self._apply_group_config,
            QuotaSet: self._apply_quota,
            FeatureLevelSet: self.features.apply,
            ProducerIdsReserved: self._apply_producer_ids,
        }

    @classmethod
    def open(
        cls,
        disk: Disk,
        data_dir: str,
        config: BrokerConfig,
        ids: Ids,
        offload: Offload,
        open_partition: OpenPartition,
        *,
        was_clean: bool = True,
    ) -> Topics:
        """Replay the metadata log of `data_dir`; a new one gets its cluster id. Blocking."""
        log, records = MetadataLog.open(disk, data_dir, was_clean=was_clean)
        topics = cls(log, config, ids, offload, open_partition)
        for record in records:
            topics._replay(record)
        # What is left of the last block may have been given out before a crash.
        topics._next_producer_id = topics._producer_ids_end
        topics._name_cluster(config.maybe_str("cluster.id"))
        return topics

    def close(self) -> None:
        self._log.close()

    @property
    def is_durable(self) -> bool:
        """Whether everything that was written is surely on disk."""
        return self._log.failed is None

    # ---- reading

    def get(self, name: str) -> Topic | None:
        return self._by_name.get(name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def is_deleted(self, topic_id: bytes) -> bool:
        """Whether files of this topic are leftovers. Those of unknown topics are not: a record may have been lost."""
        return topic_id in self._deleted

    def altered(self, node: str) -> Mapping[str, str]:
        """Broker settings altered for one node, or for all of them (node "")."""
        return self._altered.get(node, {})

    # ---- deciding: what may be changed, ApiError when it may not

    def create(self, name: str, partitions: int, configs: Mapping[str, str], boot: int) -> TopicCreated:
        self.check_name(name)
        self.check_configs(configs)
        return TopicCreated(name, self._ids.uuid(), partitions, boot, dict(configs))

    def check_name(self, name: str) -> None:
        """Whether a new topic can have this name."""
        problem = topic_name_problem(name)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name in self._by_name:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name!r} exists already")
        alike = self._by_flat_name.get(_flat_name(name) or "")
        if alike:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic {name!r} is too much like {min(alike)!r}")

    def check_configs(self, configs: Mapping[str, str]) -> None:
        """Whether a topic can have these settings of its own."""
        if not configs:
            return
        try:
            check_topic_settings(self.config, configs)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error

    # ---- changing

    def change(self, decide: Callable[[], Decision[T]]) -> Pending[T]:
        """Call `decide` when no other change is under way; settle with its answer once its records are durable."""
        return self._changes.submit(decide)

    async def new_producer_id(self) -> int:
        """One that was never given out before, not even before a crash."""
        while self._next_producer_id == self._producer_ids_end:
            await self.change(self._reserve_producer_ids)
        self._next_producer_id += 1
        return self._next_producer_id - 1

    def _reserve_producer_ids(self) -> Decision[None]:
        if self._next_producer_id < self._producer_ids_end:
            return Decision([], None)
        return Decision([ProducerIdsReserved(self._producer_ids_end + PRODUCER_ID_BLOCK)], None)

    def _name_cluster(self, wanted: str | None) -> None:
        if not self.cluster_id:
            record = ClusterNamed(wanted or urlsafe_b64encode(self._ids.uuid()).decode().rstrip("="))
            self._log.commit([record])
            self._replay(record)
        elif wanted not in (None, self.cluster_id):
            raise ConfigError(f"cluster.id={wanted!r}, but the data directory belongs to cluster {self.cluster_id!r}")

    # ---- replaying

    def _replay(self, record: Record) -> None:
        self.version += 1
        self._apply[type(record)](record)
        self.answers.clear()

    def _apply_cluster(self, record: ClusterNamed) -> None:
        self.cluster_id = record.cluster_id
        self.version += record.records

    def _apply_created(self, record: TopicCreated) -> None:
        if record.name in self._by_name:
            # Only in a log that was damaged: the deletion of the older one is lost.
            self._apply_deleted(TopicDeleted(self._by_name[record.name].id))
        topic = Topic(record.name, record.topic_id, *self._configs_for(record.configs), self._open_partition)
        topic.grow(record.partitions, record.boot)
        self._by_name[topic.name] = self._by_id[topic.id] = topic
        if (flat := _flat_name(topic.name)) is not None:
            self._by_flat_name.setdefault(flat, set()).add(topic.name)

    def _apply_deleted(self, record: TopicDeleted) -> None:
        self._deleted.add(record.topic_id)
        topic = self._by_id.pop(record.topic_id, None)
        if topic is None:  # only in a log that was damaged
            return
        del self._by_name[topic.name]
        if (flat := _flat_name(topic.name)) is not None:
            self._by_flat_name[flat].discard(topic.name)
            if not self._by_flat_name[flat]:
                del self._by_flat_name[flat]
        for listener in self.on_deleted:
            listener(topic)

    def _apply_partitions(self, record: PartitionsAdded) -> None:
        if (topic := self._by_id.get(record.topic_id)) is not None:
            topic.grow(record.partitions, record.boot)

    def _apply_topic_config(self, record: TopicConfigured) -> None:
        if (topic := self._by_id.get(record.topic_id)) is not None:
            topic.configure(*self._configs_for(record.configs))

    def _apply_broker_config(self, record: BrokerConfigured) -> None:
        self._altered[record.node] = record.configs
        if not record.configs:
            del self._altered[record.node]
        self.config = self.config.altered(self.altered(""), self.altered(str(self.config.int("node.id"))))
        self._configs.clear()
        for topic in self:
            topic.configure(*self._configs_for(topic.config.overrides))

    def _apply_group_config(self, record: GroupConfigured) -> None:
        self.group_configs[record.group] = record.configs
        if not record.configs:
            del self.group_configs[record.group]

    def _apply_quota(self, record: QuotaSet) -> None:
        self.quotas[record.entity] = record.values
        if not record.values:
            del self.quotas[record.entity]

    def _apply_producer_ids(self, record: ProducerIdsReserved) -> None:
        self._producer_ids_end = record.end

    def topic_config(self, overrides: Mapping[str, str]) -> TopicConfig:
        """What would hold for a topic with these settings of its own."""
        return self._configs_for(overrides)[0]

    def _configs_for(self, overrides: Mapping[str, str]) -> tuple[TopicConfig, LogConfig]:
        key = frozenset(overrides.items())
        shared = self._configs.get(key)
        if shared is None:
            if len(self._configs) > SHARED_CONFIGS_MAX:
                self._configs.clear()
            config = TopicConfig(self.config, overrides)
            shared = self._configs[key] = config, log_config(self.config, config)
        return shared

    # ---- keeping the log short

    def rewrite_if_long(self) -> bool:
        """Replace a log that is mostly history. For start-up, when the files of deleted topics are gone. Blocking."""
        if self._log.records <= REWRITE_RECORDS_MIN:
            return False
        snapshot = list(self._snapshot())
        if self._log.records <= 2 * len(snapshot):
            return False
        self._deleted.clear()
        self._log.rewrite([ClusterNamed(self.cluster_id, self.version - len(snapshot) - 1), *snapshot])
        return True

    def _snapshot(self) -> Iterator[Record]:
        for node, configs in self._altered.items():
            yield BrokerConfigured(node, configs)
        for topic in self:
            (partitions, boot), *added = topic.growth()
            yield TopicCreated(topic.name, topic.id, partitions, boot, topic.config.overrides)
            for partitions, boot in added:
                yield PartitionsAdded(topic.id, partitions, boot)
        for group, configs in self.group_configs.items():
            yield GroupConfigured(group, configs)
        for entity, values in self.quotas.items():
            yield QuotaSet(entity, values)
        yield from self.features.altered()
        yield ProducerIdsReserved(self._producer_ids_end)


def _flat_name(name: str) -> str | None:
    """Names that differ in . and _ alone would be one name in metrics; None for names without either."""
    return name.replace(".", "_") if "." in name or "_" in name else None
