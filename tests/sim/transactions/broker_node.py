"""A whole broker on a simulated disk in the place of a single shard: real logs, groups, markers and loads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.sim import batches
from tests.sim.groups import broker_node
from tests.sim.groups.network import Exchange
from tests.sim.transactions.judge import Judge
from tests.sim.transactions.requests import TOPIC, Identity, group_of

from lowwater.errors import ErrorCode
from lowwater.transactions.state import State
from lowwater.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from lowwater.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from lowwater.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

FETCH_VERSION, OFFSET_FETCH_VERSION = 12, 9
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
SAFE_DOWNGRADE = 2
FETCH_BYTES = 1 << 20
INTERNAL = ("__consumer_offsets", "__transaction_state")


class Waiting:
    """Who waits for an answer, as the node of groups wants to know it; answers go to the judge."""

    def __init__(self, judge: Judge, node: BrokerNode) -> None:
        self._judge = judge
        self._node = node
        self._open: dict[Exchange, None] = {}

    @property
    def waiting(self) -> list[Exchange]:
        return list(self._open)

    def report(self, problem: str) -> None:
        self._judge.report(problem)

    def delivered(self, exchange: Exchange, elapsed_ms: float, wall_ms: int) -> None:
        self._open[exchange] = None

    def issued(self, exchange: Exchange, elapsed_ms: float, facts: Any) -> None:
        del self._open[exchange]
        self._judge.issued(exchange, self._node.ends)

    def crashed(self, elapsed_ms: float) -> None:
        self._open.clear()

    def reloaded(self, elapsed_ms: float) -> None:
        self._judge.restarted(self._node.ends)


class BrokerNode(broker_node.BrokerNode):
    """What the world asks of a node, by requests to a broker."""

    def __init__(self, settings: dict[str, str], judge: Judge, draw: random.Random, partitions: int) -> None:
        waiting: Any = Waiting(judge, self)
        super().__init__(settings, waiting, draw)
        self._of_transactions = judge
        self._indexes = range(partitions)

    def _note_ends_of_groups(self) -> None:
        """Groups are not what is judged here."""

    def _may_expire(self) -> None:
        """Nor are offsets that grow too old."""

    @property
    def ends(self) -> dict[int, int]:
        return {index: self._log(index).log_end if self._has_topic else 0 for index in self._indexes}

    @property
    def _has_topic(self) -> bool:
        return any(topic.name == TOPIC for topic in self.broker.broker.topics)

    def _log(self, index: int) -> Any:
        return self.broker.broker.partition(TOPIC, index).log

    def set_level(self, level: int) -> None:
        """Of the feature transaction.version."""
        update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=SAFE_DOWNGRADE)
        answer = self.broker.ask(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[update]), 1)
        assert answer.error_code == ErrorCode.NONE, answer

    # -- readers

    def read_all(self) -> None:
        for index in self._indexes:
            position = self._of_transactions.position(index)
            self._ask(_fetch(index, position, READ_COMMITTED), FETCH_VERSION, lambda answer: self._take(answer))

    def _take(self, answer: Any) -> None:
        data = answer.responses[0].partitions[0]
        code = ErrorCode(data.error_code)
        if code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            return
        if code is not ErrorCode.NONE:
            self._of_transactions.report(f"a reader of {data.partition_index} was answered {code.name}")
            return
        found, upto = _committed(data)
        if upto is not None:
            self._of_transactions.read(data.partition_index, found, upto)

    # -- in the end, when nothing is held up any more

    def settle(self) -> None:
        self.broker.offload.release()
        self.broker.time.settle()

    def _read_whole(self, index: int, isolation_level: int) -> Iterator[Any]:
        position, end = 0, self._log(index).log_end
        while position < end:
            answer = self.broker.ask(_fetch(index, position, isolation_level), FETCH_VERSION)
            data = answer.responses[0].partitions[0]
            last = [batch.last_offset for batch in batches.decode_all(bytes(data.records or b""))][-1:]
            if not last:
                return
            yield data
            position = last[0] + 1

    def visible(self) -> dict[int, list[tuple[int, str]]]:
        self.settle()
        return {
            index: [one for data in self._read_whole(index, READ_COMMITTED) for one in _committed(data)[0]]
            for index in self._indexes
        }

    def batches(self) -> list[tuple[int, int, Identity]]:
        return [
            (index, batch.base_offset, Identity(batch.producer_id, batch.producer_epoch))
            for index in self._indexes
            for data in self._read_whole(index, READ_UNCOMMITTED)
            for batch in batches.decode_all(bytes(data.records or b""))
            if not batch.is_control
        ]

    def committed_offset(self, transactional_id: str) -> int | None:
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
        group = OffsetFetchRequestGroup(group_id=group_of(transactional_id), topics=[topic])
        answer = self.broker.ask(OffsetFetchRequest(groups=[group], require_stable=True), OFFSET_FETCH_VERSION)
        [found] = answer.groups
        if found.error_code != ErrorCode.NONE or not found.topics:
            self._of_transactions.report(f"the offsets of {transactional_id}: {ErrorCode(found.error_code).name}")
            return None
        [partition] = found.topics[0].partitions
        if partition.error_code != ErrorCode.NONE:
            self._of_transactions.report(f"the offset of {transactional_id}: {ErrorCode(partition.error_code).name}")
        return partition.committed_offset if partition.committed_offset >= 0 else None

    def unfinished(self) -> list[str]:
        busy = (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT)
        shards = [driver.shard for driver in self.broker.broker.transactions._drivers]
        ids = [
            f"{name} is {one.state.label}"
            for shard in shards
            for name, one in shard.transactions.items()
            if one.state in busy
        ]
        logs = [
            f"readers of {partition.log.topic_partition} are held up at {partition.log.last_stable}"
            for topic in self.broker.broker.topics
            for partition in topic.opened()
            if partition.log.last_stable != partition.log.log_end
        ]
        return ids + logs


def _fetch(index: int, position: int, isolation_level: int) -> FetchRequest:
    wanted = FetchPartition(partition=index, fetch_offset=position, partition_max_bytes=FETCH_BYTES)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        isolation_level=isolation_level,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
        forgotten_topics_data=[],
    )


def _committed(data: Any) -> tuple[list[tuple[int, str]], int | None]:
    """What a client makes of an answer: it drops what the answer says was aborted. And up to where it has read."""
    starts = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    aborted: set[int] = set()
    found, upto = [], None
    for batch in batches.decode_all(bytes(data.records or b"")):
        upto = batch.last_offset + 1
        while starts and starts[0][0] <= batch.last_offset:
            aborted.add(starts.pop(0)[1])
        if batch.is_control:
            aborted.discard(batch.producer_id)
        elif batch.producer_id not in aborted:
            found += [(record.offset, str(record.value or b"", "ascii")) for record in batch.records]
    return found, upto
