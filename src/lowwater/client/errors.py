"""What goes wrong between a client and its brokers: what happened, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Self

from lowwater.errors import ConfigError, ErrorCode, LowwaterError
from lowwater.types import TopicPartition


class ClientError(LowwaterError):
    """Base of the family. `retriable`: the same may succeed later; it was tried until the time allowed was over."""

    retriable = False

    def __init__(
        self,
        what: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        advice: str = "",
    ) -> None:
        super().__init__(what)
        self.what = what
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.advice = advice
        self.tries = 1
        self.elapsed_ms = 0.0

    def after(self, tries: int, elapsed_ms: float) -> Self:
        """The same, at the end of that many tries, or of more that were counted already."""
        self.tries, self.elapsed_ms = max(self.tries, tries), max(self.elapsed_ms, elapsed_ms)
        return self

    def __reduce__(self) -> tuple[object, ...]:
        """Copies, and those that cross processes, are as this is, whatever their constructor takes."""
        return _as_it_was, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        where = _place(self.topic, self.partition, self.offset)
        parts = [f"{where}: {self.what}" if where else self.what, self.advice]
        if self.tries > 1:
            parts.append(f"tried {self.tries} times in {self.elapsed_ms / 1000:.1f} s")
        return "; ".join(part for part in parts if part)


class ConnectError(ClientError):
    """A broker cannot be reached. Nothing was sent."""

    retriable = True


class DisconnectedError(ClientError):
    """The connection broke before the answer came; whether the request was served is not known."""

    retriable = True


class RequestTimeoutError(ClientError):
    """No answer within the time allowed; whether the request was served is not known."""

    retriable = True


class TlsError(ClientError):
    """The TLS handshake failed: a certificate that is not trusted, a wrong name, no common version."""


class AuthenticationError(ClientError):
    """The broker refuses the login, or fails to prove who it is."""


class ProtocolError(ClientError):
    """The broker sent bytes that are not the protocol; the connection was closed."""


class CorruptRecordsError(ClientError):
    """Records cannot be read: a checksum is wrong, a field contradicts another, or too much comes out of a codec."""


class UnsupportedError(ClientError):
    """The broker does not serve an API, or no version of it that is understood here."""


class RecordFormatError(UnsupportedError):
    """Records are stored in a format that is not read here."""


class ClosedError(ClientError):
    """The client was closed."""


class BrokerError(ClientError):
    """The broker answered with an error code."""

    def __init__(
        self,
        code: int,
        what: str = "",
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        advice: str = "",
    ) -> None:
        known = _CODES.get(code)
        text = f"error {code}, which is not known here" if known is None else f"{known.name}, {known.text}"
        super().__init__(
            f"{what}: {text}" if what else text, topic=topic, partition=partition, offset=offset, advice=advice
        )
        self.code = code
        self.retriable = known is not None and known.retriable


class UnknownTopicError(BrokerError):
    """There is no such topic or partition."""


class TopicRecreatedError(UnknownTopicError):
    """The topic was deleted, and there is another of the same name: offsets in the old one mean nothing in it."""

    expected_id = ""
    found_id = ""

    def instead_of(self, expected_id: str, found_id: str) -> Self:
        self.expected_id, self.found_id = expected_id, found_id
        self.what = f"the topic was deleted and made anew: its id was {expected_id}, now it is {found_id}"
        self.retriable = False  # the old one does not come back
        return self


class AuthorizationError(BrokerError):
    """The login is good, but may not do this."""


class GroupError(BrokerError):
    """The group refuses what this member, or this client, asks of it."""


class NotMemberError(GroupError):
    """The group has gone on without this member; its partitions are read by others now."""


class RebalancingError(GroupError):
    """The group is being rebalanced; what is asked is possible again when the member has its new share."""


class FencedInstanceError(GroupError):
    """Another member has taken the same group.instance.id. Two of one name cannot both read."""


class OffsetOutOfRangeError(BrokerError):
    """The offset is not within [log_start, log_end] of its partition; -1 stands for a bound that is not known."""

    log_start = -1
    log_end = -1

    def within(self, log_start: int, log_end: int) -> Self:
        self.log_start, self.log_end = log_start, log_end
        self.what += f" [{log_start}, {log_end}]"
        return self


class LogTruncatedError(OffsetOutOfRangeError):
    """Records [first, behind) were read, and are not in the log any more: a leader was lost before others had them."""

    first = -1
    behind = -1

    def of(self, first: int, behind: int) -> Self:
        self.first, self.behind = first, behind
        self.what = f"the log was truncated: what was read at offsets {first} to {behind - 1} is not there any more"
        return self


class CommitError(ClientError):
    """Offsets of some partitions could not be committed: `errors` says why for each; those of `committed` were."""

    def __init__(
        self, errors: Mapping[TopicPartition, ClientError], committed: Collection[TopicPartition] = ()
    ) -> None:
        partition, first = next(iter(errors.items()))
        further = f", and {len(errors) - 1} more partitions" if len(errors) > 1 else ""
        super().__init__(
            f"its offset was not committed{further}: {first.what}",
            topic=partition.topic,
            partition=partition.partition,
            advice=first.advice,
        )
        self.errors = dict(errors)
        self.committed = frozenset(committed)
        self.retriable = all(error.retriable for error in errors.values())


class BadRowsError(ClientError, ConfigError, ValueError):
    """What was handed in cannot be written as records."""


class RecordTooLargeError(ClientError):
    """A single record is larger than is sent, or than its topic takes."""


class DeliveryTimeoutError(RequestTimeoutError):
    """Rows were not written, or nobody knows whether they were, within delivery.timeout.ms."""

    retriable = False


class DeliveryError(ClientError):
    """Rows were not written; `first` says why the first of them was not, `summary` what became of all."""

    def __init__(self, summary: Any, row: int, first: ClientError) -> None:
        super().__init__(
            f"{summary.failed} of {summary.rows} rows were not written, row {row} because: {first.what}",
            topic=first.topic,
            partition=first.partition,
            advice=first.advice,
        )
        self.summary = summary
        self.first = first
        self.after(first.tries, first.elapsed_ms)


class TransactionError(ClientError):
    """The call does not fit the state of the producer's transaction."""


class AbortableError(TransactionError):
    """Something in the transaction failed: it can only be aborted. Its cause says what."""


class FencedError(BrokerError):
    """Another producer with the same transactional id has taken over, or the transaction's time was over."""


_CODES = {int(code): code for code in ErrorCode}
_KINDS: dict[int, type[BrokerError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopicError,
    ErrorCode.UNKNOWN_TOPIC_ID: UnknownTopicError,
    ErrorCode.OFFSET_OUT_OF_RANGE: OffsetOutOfRangeError,
    ErrorCode.UNKNOWN_MEMBER_ID: NotMemberError,
    ErrorCode.ILLEGAL_GENERATION: NotMemberError,
    ErrorCode.STALE_MEMBER_EPOCH: NotMemberError,
    ErrorCode.FENCED_MEMBER_EPOCH: NotMemberError,
    ErrorCode.REBALANCE_IN_PROGRESS: RebalancingError,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceError,
    ErrorCode.UNRELEASED_INSTANCE_ID: FencedInstanceError,
    ErrorCode.INVALID_PRODUCER_EPOCH: FencedError,
    ErrorCode.PRODUCER_FENCED: FencedError,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: FencedError,
    ErrorCode.INVALID_GROUP_ID: GroupError,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupError,
    ErrorCode.NON_EMPTY_GROUP: GroupError,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: GroupError,
    ErrorCode.INVALID_SESSION_TIMEOUT: GroupError,
    ErrorCode.GROUP_MAX_SIZE_REACHED: GroupError,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: GroupError,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: AuthorizationError,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: AuthorizationError,
}


def broker_error(
    code: int,
    what: str = "",
    *,
    topic: str | None = None,
    partition: int | None = None,
    offset: int | None = None,
    advice: str = "",
) -> BrokerError:
    """The error for a code that is not 0, of the class that users catch it by."""
    kind = _KINDS.get(code, BrokerError)
    return kind(code, what, topic=topic, partition=partition, offset=offset, advice=advice)


def truncated(one: TopicPartition, first: int, behind: int, advice: str) -> LogTruncatedError:
    """[first, behind)."""
    code = ErrorCode.OFFSET_OUT_OF_RANGE
    error = LogTruncatedError(code, topic=one.topic, partition=one.partition, offset=behind, advice=advice)
    return error.of(first, behind)


def _as_it_was(kind: type[ClientError], args: tuple[object, ...], fields: dict[str, object]) -> ClientError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


def _place(topic: str | None, partition: int | None, offset: int | None) -> str:
    place = "" if topic is None else repr(topic)
    if partition is not None:
        place = f"{place} partition {partition}".lstrip()
    if offset is not None:
        place = f"{place} offset {offset}".lstrip()
    return place
