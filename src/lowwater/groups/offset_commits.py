"""Commits of offsets, plain ones and those of transactions: what of them is stored, and as what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from lowwater.errors import ErrorCode
from lowwater.groups.commands import Commit
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_admission import MayCommit
from lowwater.groups.offsets import NEVER, CommittedOffsets
from lowwater.groups.record_schemas import OffsetCommitValue
from lowwater.groups.records import encode_value, offset_key, offset_value
from lowwater.groups.topics import TopicsView
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from lowwater.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from lowwater.wire.schema import ZERO_UUID

TIME_MAX = (1 << 63) - 1
Partition: TypeAlias = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition
Named: TypeAlias = tuple[str | None, Sequence[Partition]]
"""A topic of a request, by its name if it has one now, and the partitions that are committed of it."""
Answer = TypeVar("Answer", OffsetCommitResponsePartition, TxnOffsetCommitResponsePartition)


class _Terms(NamedTuple):
    """What is said of all partitions of a request. `refused` is the group's word on it."""

    group_id: str
    refused: ErrorCode
    now_ms: int
    expire_ms: int = NEVER


class OffsetCommits:
    """Says what is to be written; `CommittedOffsets.replay` writes it.

    `may_commit` is the group's word on each partition, None when all are allowed. A request with one that is not is
    refused as a whole.
    """

    def __init__(self, config: GroupConfig, topics: TopicsView, offsets: CommittedOffsets) -> None:
        self._config = config
        self._topics = topics
        self._offsets = offsets

    def commit(
        self, command: Commit, refused: ErrorCode, may_commit: MayCommit | None, now: Now, out: Outcome
    ) -> OffsetCommitResponse:
        request = command.request
        if may_commit is not None:
            asked = [(self._name(command, topic), topic.partitions) for topic in request.topics]
            refused = refused if self._all_allowed(asked, may_commit) else ErrorCode.STALE_MEMBER_EPOCH
        expire_ms = NEVER if command.expire_after_ms < 0 else min(now.wall_ms + command.expire_after_ms, TIME_MAX)
        terms = _Terms(request.group_id, refused, now.wall_ms, expire_ms)
        answers = []
        for topic in request.topics:
            name = self._name(command, topic) if command.by_id else topic.name
            parts = self._take(name, topic.partitions, terms, OffsetCommitResponsePartition, out)
            answers.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts))
        return OffsetCommitResponse(topics=answers)

    def _name(self, command: Commit, topic: OffsetCommitRequestTopic) -> str | None:
        return self._topics.topic_name(topic.topic_id) if command.by_id else topic.name

    def commit_in_transaction(
        self, request: TxnOffsetCommitRequest, refused: ErrorCode, may_commit: MayCommit | None, now: Now, out: Outcome
    ) -> TxnOffsetCommitResponse:
        if may_commit is not None:
            asked = [(topic.name, topic.partitions) for topic in request.topics]
            refused = refused if self._all_allowed(asked, may_commit) else ErrorCode.ILLEGAL_GENERATION
        terms = _Terms(request.group_id, refused, now.wall_ms)
        out.producer = request.producer_id, request.producer_epoch
        answers = []
        for topic in request.topics:
            parts = self._take(topic.name, topic.partitions, terms, TxnOffsetCommitResponsePartition, out)
            answers.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=parts))
        return TxnOffsetCommitResponse(topics=answers)

    def _all_allowed(self, asked: Iterable[Named], may_commit: MayCommit) -> bool:
        """Of those that could be stored."""
        return all(
            may_commit(name, part.partition_index)
            for name, partitions in asked
            for part in partitions
            if name is not None and self._exists(name, part.partition_index) and not self._problem(part)
        )

    def _exists(self, name: str, partition: int) -> bool:
        return 0 <= partition < (self._topics.partition_count(name) or 0)

    def _take(
        self,
        name: str | None,
        partitions: Iterable[Partition],
        terms: _Terms,
        answer: Callable[..., Answer],
        out: Outcome,
    ) -> list[Answer]:
        """Store what can be stored of one topic; the answer for each partition."""
        count = (self._topics.partition_count(name) if name is not None else None) or 0
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        # Also of commits by name: a topic that is deleted and made anew begins without offsets.
        topic_id = (self._topics.topic_id(name) if name is not None else None) or ZERO_UUID
        group_id, refused, now_ms, expire_ms = terms
        answers = []
        for part in partitions:
            index = part.partition_index
            if name is None or not 0 <= index < count:
                answers.append(answer(partition_index=index, error_code=unknown))
                continue
            code = refused or self._problem(part)
            if not code:
                key = offset_key(group_id, name, index)
                self._offsets.announced[key] = group_id, name, index
                if expire_ms == NEVER:
                    offset, epoch = part.committed_offset, part.committed_leader_epoch
                    value = offset_value(offset, epoch, part.committed_metadata or "", now_ms, topic_id)
                else:
                    value = _expiring(part, now_ms, expire_ms, topic_id)
                out.records.append(StateRecord(key, value))
            answers.append(answer(partition_index=index, error_code=code))
        return answers

    def _problem(self, part: Partition) -> ErrorCode:
        metadata = part.committed_metadata
        if metadata and len(metadata) > self._config.offset_metadata_bytes_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE


def _expiring(part: Partition, now_ms: int, expire_ms: int, topic_id: bytes) -> bytes:
    """The value of an offset that goes at a time of its own."""
    return encode_value(
        OffsetCommitValue(
            offset=part.committed_offset,
            leader_epoch=part.committed_leader_epoch,
            metadata=part.committed_metadata or "",
            commit_timestamp=now_ms,
            expire_timestamp=expire_ms,
            topic_id=topic_id,
        )
    )
