"""Committed offsets against lists: commits, plain and in transactions, deletions, expiry, topics that go and come back,
restarts, compaction.

All of it through the requests of a whole broker on virtual time; after each step the broker and the lists say the same.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.broker.talk import create, delete

from lowwater.errors import ErrorCode
from lowwater.testing.disk_image import pending_operations
from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from lowwater.wire.messages.delete_groups import DeleteGroupsRequest
from lowwater.wire.messages.end_txn import EndTxnRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from lowwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

MINUTE_MS = 60_000
START_MS = 2_000
RETENTION_MS = 10 * MINUTE_MS
CHECK_MS = 30_000
CLEANING_MS = 40_000
CONFIG = {
    "auto.create.topics.enable": "false",
    "offsets.retention.minutes": "10",
    "offsets.retention.check.interval.ms": str(CHECK_MS),
    "offsets.topic.segment.bytes": "1200",
    "log.cleaner.backoff.ms": "30000",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "transaction.max.timeout.ms": str(2**31 - 1),
}
GROUPS = ("g", "h", "")
TOPICS = ("t", "u")
PARTITIONS = 2
PRODUCERS = ("P", "Q")
ADDS_ITSELF_SINCE = 5

groups, topics, producers = st.sampled_from(GROUPS), st.sampled_from(TOPICS), st.sampled_from(PRODUCERS)
Key = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class Transaction:
    """Of one producer, from its first commit on. What it has written holds when it commits."""

    fate: str = "open"


@dataclass(slots=True)
class Committed:
    offset: int
    metadata: str
    wall_ms: int
    own_retention_ms: int | None = None

    def expires_ms(self) -> int:
        return self.wall_ms + (RETENTION_MS if self.own_retention_ms is None else self.own_retention_ms)


@dataclass(slots=True)
class History:
    """All commits of one partition of a group in their order, None for a deletion. The last that counts holds."""

    entries: list[tuple[Committed | None, Transaction | None]] = field(default_factory=list)

    def add(self, committed: Committed | None, transaction: Transaction | None = None) -> None:
        self.entries.append((committed, transaction))

    @property
    def current(self) -> Committed | None:
        counting = [one for one, within in self.entries if within is None or within.fate == "committed"]
        return counting[-1] if counting else None

    @property
    def is_pending(self) -> bool:
        since_deletion = []
        for one in self.entries:
            since_deletion = [] if one[0] is None else [*since_deletion, one]
        return any(within is not None and within.fate == "open" for _, within in since_deletion)


class OffsetsMachine(RuleBasedStateMachine):
    @initialize(shards=st.sampled_from(("1", "3")))
    def begin(self, shards: str) -> None:
        self.disk = SimDisk()
        self.config = {**CONFIG, "offsets.topic.num.partitions": shards}
        self.starts = 0
        self.broker = VirtualBroker(self.config, disk=self.disk)
        self.model: dict[Key, History] = defaultdict(History)
        self.producers: dict[str, tuple[int, int]] = {}
        self.transactions: dict[str, Transaction] = {}
        self.ended_ms = 0
        self.topics: set[str] = set()
        for topic in TOPICS:
            self.create_topic(topic)

    def _ask(self, request: Any, version: int) -> Any:
        return self.broker.ask(request, version)

    # -- what clients do

    @rule(
        group=groups,
        topic=topics,
        partitions=st.sets(st.integers(-1, PARTITIONS), min_size=1, max_size=3),
        offset=st.integers(0, 2**63 - 1),
        metadata=st.sampled_from(("", "note", "漢" * 5, "x" * 4097)),
        retention_ms=st.sampled_from((None, None, None, 2 * MINUTE_MS)),
    )
    def commit(
        self, group: str, topic: str, partitions: set[int], offset: int, metadata: str, retention_ms: int | None
    ) -> None:
        parts = [
            OffsetCommitRequestPartition(
                partition_index=one, committed_offset=offset, committed_metadata=metadata or None
            )
            for one in sorted(partitions)
        ]
        request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=parts)])
        version = 9
        if retention_ms is not None:
            request.retention_time_ms, version = retention_ms, 4
        answer = self._ask(request, version)
        for one in answer.topics[0].partitions:
            expected = self._expected(topic, one.partition_index, metadata)
            assert one.error_code == expected, (one, expected)
            if not expected:
                committed = Committed(offset, metadata, self.broker.clock.now_ms(), retention_ms)
                self.model[group, topic, one.partition_index].add(committed)

    def _expected(self, topic: str, partition: int, metadata: str) -> ErrorCode:
        if topic not in self.topics or not 0 <= partition < PARTITIONS:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if len(metadata) > 4096 else ErrorCode.NONE

    # -- in transactions

    @rule(
        producer=producers,
        group=groups,
        topic=topics,
        partitions=st.sets(st.integers(-1, PARTITIONS), min_size=1, max_size=3),
        offset=st.integers(0, 2**63 - 1),
        version=st.sampled_from((0, 3, 4, 5, 5)),
    )
    def commit_in_transaction(
        self, producer: str, group: str, topic: str, partitions: set[int], offset: int, version: int
    ) -> None:
        if producer not in self.producers:
            self._init(producer)
        producer_id, epoch = self.producers[producer]
        within = {"transactional_id": producer, "producer_id": producer_id, "producer_epoch": epoch, "group_id": group}
        if version < ADDS_ITSELF_SINCE and group:
            assert self._ask(AddOffsetsToTxnRequest(**within), 3).error_code == 0
        parts = [
            TxnOffsetCommitRequestPartition(partition_index=one, committed_offset=offset, committed_metadata="in")
            for one in sorted(partitions)
        ]
        wanted = [TxnOffsetCommitRequestTopic(name=topic, partitions=parts)]
        answer = self._ask(TxnOffsetCommitRequest(**within, topics=wanted), version)
        # A commit of which nothing can be stored does not begin one.
        is_known = topic in self.topics and any(0 <= one < PARTITIONS for one in partitions)
        if group and (is_known or version < ADDS_ITSELF_SINCE):
            self.transactions.setdefault(producer, Transaction())
        for one in answer.topics[0].partitions:
            expected = self._expected(topic, one.partition_index, "in")
            if not expected and not group:
                expected = ErrorCode.INVALID_GROUP_ID
            assert one.error_code == expected, (one, expected)
            if not expected:
                committed = Committed(offset, "in", self.broker.clock.now_ms())
                self.model[group, topic, one.partition_index].add(committed, self.transactions[producer])

    def _init(self, producer: str) -> None:
        """What its last instance has begun is aborted, and then it is asked again."""
        request = InitProducerIdRequest(transactional_id=producer, transaction_timeout_ms=2**31 - 1)
        answer = self._ask(request, 4)
        if answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS:
            self.broker.time.settle()
            answer = self._ask(request, 4)
        assert answer.error_code == 0
        self.producers[producer] = answer.producer_id, answer.producer_epoch
        if producer in self.transactions:
            self._ended(producer, "aborted")

    def _ended(self, producer: str, fate: str) -> None:
        self.broker.time.settle()
        self.transactions.pop(producer).fate = fate
        self.ended_ms = self.broker.clock.now_ms()

    @rule(producer=producers)
    def come_as_a_new_instance(self, producer: str) -> None:
        self._init(producer)

    @rule(producer=producers, commit=st.sampled_from((True, True, False)))
    def end_transaction(self, producer: str, commit: bool) -> None:
        if producer not in self.transactions:
            return
        producer_id, epoch = self.producers[producer]
        request = EndTxnRequest(
            transactional_id=producer, producer_id=producer_id, producer_epoch=epoch, committed=commit
        )
        answer = self._ask(request, 5)
        assert answer.error_code == 0
        self.producers[producer] = answer.producer_id, answer.producer_epoch
        self._ended(producer, "committed" if commit else "aborted")

    @rule(
        producer=producers,
        group=st.sampled_from(("g", "h")),
        topic=topics,
        offset=st.integers(0, 1000),
        commit=st.booleans(),
    )
    def begin_and_end(self, producer: str, group: str, topic: str, offset: int, commit: bool) -> None:
        """A transaction from its beginning to its end, or the rest of one."""
        self.commit_in_transaction(producer, group, topic, {0, 1}, offset, 5)
        self.the_broker_knows_what_the_model_knows()
        self.end_transaction(producer, commit)

    # -- deletions

    def _forget(self, **named: Any) -> None:
        """Everything of a group, of a topic, of a partition."""
        for key, history in self.model.items():
            said = dict(zip(("group", "topic", "partition"), key, strict=True))
            if all(said[name] == wanted for name, wanted in named.items()):
                history.add(None)

    def _has_group(self, group: str) -> bool:
        return any(key[0] == group and (one.current or one.is_pending) for key, one in self.model.items())

    @rule(group=groups, topic=topics, partition=st.integers(0, PARTITIONS))
    def delete_offset(self, group: str, topic: str, partition: int) -> None:
        wanted = [OffsetDeleteRequestPartition(partition_index=partition)]
        request = OffsetDeleteRequest(group_id=group, topics=[OffsetDeleteRequestTopic(name=topic, partitions=wanted)])
        answer = self._ask(request, 0)
        if not group:
            assert answer.error_code == ErrorCode.INVALID_GROUP_ID
            return
        if not self._has_group(group):
            assert answer.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NONE)
            return
        assert answer.error_code == 0
        if topic in self.topics:
            self._forget(group=group, topic=topic, partition=partition)

    @rule(group=groups)
    def delete_group(self, group: str) -> None:
        answer = self._ask(DeleteGroupsRequest(groups_names=[group]), 2)
        if self._has_group(group):
            assert answer.results[0].error_code == 0
        self._forget(group=group)

    # -- topics

    @rule(topic=topics)
    def create_topic(self, topic: str) -> None:
        if topic not in self.topics:
            create(self.broker, topic, PARTITIONS)
            self.topics.add(topic)

    @rule(topic=topics)
    def delete_topic(self, topic: str) -> None:
        if topic in self.topics:
            delete(self.broker, topic)
            self.broker.time.settle()
            self.topics.discard(topic)
            self._forget(topic=topic)

    # -- time, and the process

    @rule(minutes=st.sampled_from((1, 1, 3, 8)))
    def let_time_pass(self, minutes: int) -> None:
        """Segments are cleaned meanwhile, too."""
        self.broker.time.advance(minutes * MINUTE_MS)

    @rule(rounds=st.integers(5, 15))
    def commit_much_and_compact(self, rounds: int) -> None:
        for number in range(rounds):
            self.commit("g", "t", {0, 1}, number, "much", None)
        self.broker.time.advance(CLEANING_MS)

    @rule()
    def restart(self) -> None:
        self.broker.stop()
        self._start(self.disk)

    @rule()
    def kill(self) -> None:
        self._start(self.disk)

    @rule(data=st.data())
    def lose_power(self, data: st.DataObject) -> None:
        """Everything was answered, so nothing of it may be lost, whatever else is."""
        pending = pending_operations(self.disk.journal)
        lost = data.draw(st.sets(st.sampled_from(pending))) if pending else set()
        clock = self.disk.clock
        disk = self.disk.after(CrashState(self.disk.operations, frozenset(lost)))
        disk.clock.wall_ms, disk.clock.elapsed_ms = clock.wall_ms, clock.elapsed_ms
        self._start(disk)

    def _start(self, disk: SimDisk) -> None:
        disk.drop_process()
        self.disk = disk
        self.starts += 1
        self.broker = VirtualBroker(self.config, disk=disk, seed=self.starts)
        # What a crash left of ended transactions is written again when all coordinators are at work.
        self.broker.time.advance(START_MS)

    # -- they say the same

    @invariant()
    def the_broker_knows_what_the_model_knows(self) -> None:
        if not hasattr(self, "broker"):
            return
        self.broker.time.settle()
        stored = self._stored()
        now_ms = self.broker.clock.now_ms()
        for key, history in self.model.items():
            committed, found = history.current, stored.pop(key, None)
            if committed is None:
                assert found is None, f"{key} is {found}, and was not committed"
            elif found is None:
                assert now_ms >= committed.expires_ms(), f"{key} is gone before its time"
                assert not history.is_pending, f"{key} is gone, and a transaction may change it"
                history.add(None)
            else:
                assert found == (committed.offset, committed.metadata)
                # A start, or the end of a transaction, may have put off one look at what is too old.
                late_ms = now_ms - max(committed.expires_ms(), self.ended_ms)
                assert history.is_pending or late_ms < 2 * CHECK_MS, f"{key} should be gone"
        assert not stored, "the broker knows more than was committed"
        self._unstable_is_what_is_pending()
        self._groups_are_those_with_offsets()

    def _unstable_is_what_is_pending(self) -> None:
        wanted = [OffsetFetchRequestTopics(name=one, partition_indexes=list(range(PARTITIONS))) for one in TOPICS]
        asked = [OffsetFetchRequestGroup(group_id=one, topics=wanted) for one in GROUPS]
        answer = self._ask(OffsetFetchRequest(groups=asked, require_stable=True), 9)
        unstable = {
            (group.group_id, topic.name, one.partition_index)
            for group in answer.groups
            for topic in group.topics
            for one in topic.partitions
            if one.error_code == ErrorCode.UNSTABLE_OFFSET_COMMIT
        }
        assert unstable == {key for key, history in self.model.items() if history.is_pending}

    def _stored(self) -> dict[Key, tuple[int, str]]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=one, topics=None) for one in GROUPS])
        answer = self._ask(request, 9)
        assert [group.error_code for group in answer.groups] == [0] * len(GROUPS)
        return {
            (group.group_id, topic.name, one.partition_index): (one.committed_offset, one.metadata or "")
            for group in answer.groups
            for topic in group.topics
            for one in topic.partitions
        }

    def _groups_are_those_with_offsets(self) -> None:
        """A group without members may outlive its last offset until the next look at what is too old."""
        listed = {group.group_id: group.group_state for group in self._ask(ListGroupsRequest(), 5).groups}
        assert {key[0] for key in self.model if self._has_group(key[0])} <= listed.keys()
        assert set(listed.values()) <= {"Empty"}


# By hand: LOWWATER_MODEL_EXAMPLES=500 pytest tests/model looks where the suite's own, fixed examples do not.
EXAMPLES = os.environ.get("LOWWATER_MODEL_EXAMPLES")
OffsetsMachine.TestCase.settings = settings(
    max_examples=int(EXAMPLES or 50),
    derandomize=EXAMPLES is None,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestOffsets = OffsetsMachine.TestCase
