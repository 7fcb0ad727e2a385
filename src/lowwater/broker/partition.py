"""A partition as the broker serves it: its log, and the fetches that wait for it to grow."""

from __future__ import annotations

from typing import Protocol

from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.log.partition_log import Appended, PartitionLog

NO_EPOCH = -1
EVERYTHING = 1 << 62  # more bytes than any fetch waits for


class WaitingFetch(Protocol):
    @property
    def committed_only(self) -> bool:
        """Whether it reads up to the last stable offset."""

    def grew(self, size: int) -> None:
        """`size` more bytes can be read from one of the partitions."""


class Partition:
    """Append and tell the waiting fetches; everything else goes to `log`."""

    __slots__ = ("index", "is_internal", "log", "waiting_fetches")

    def __init__(self, index: int, log: PartitionLog, *, is_internal: bool = False) -> None:
        self.index = index
        self.is_internal = is_internal
        self.log = log
        self.waiting_fetches: set[WaitingFetch] = set()

    def append(
        self,
        batch: memoryview,
        now_ms: int,
        *,
        zstd_allowed: bool,
        in_transaction: bool = False,
        epoch_bumped: bool = False,
    ) -> Appended:
        try:
            appended = self.log.append(
                batch, now_ms, zstd_allowed=zstd_allowed, in_transaction=in_transaction, epoch_bumped=epoch_bumped
            )
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if self.waiting_fetches and not appended.duplicate:
            self._tell_waiting_fetches(len(batch))
        return appended

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether that producer has a transaction open here, in that epoch."""
        try:
            return self.log.has_transaction(producer_id, producer_epoch)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def check_producer(self, producer_id: int, producer_epoch: int) -> None:
        """ApiError when a newer epoch of that producer was seen here."""
        try:
            self.log.check_producer(producer_id, producer_epoch)
        except StorageError as error:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def append_own(self, batch: bytearray, now_ms: int) -> Appended:
        """A batch of the broker itself, to one of its own topics; StorageError when it cannot be written."""
        appended = self.log.append_own(batch, now_ms)
        if self.waiting_fetches:
            self._tell_waiting_fetches(len(batch))
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        now_ms: int,
        *,
        epoch_bumped: bool = False,
    ) -> Appended:
        """The end of a producer's transaction; ApiError for an old epoch, StorageError when it cannot be written."""
        appended = self.log.append_marker(
            producer_id, producer_epoch, commit, coordinator_epoch, now_ms, epoch_bumped=epoch_bumped
        )
        if self.waiting_fetches:
            for fetch in tuple(self.waiting_fetches):
                fetch.grew(EVERYTHING)  # that the transaction wrote before
        return appended

    def _tell_waiting_fetches(self, size: int) -> None:
        is_stable = self.log.last_stable == self.log.log_end
        for fetch in tuple(self.waiting_fetches):
            if is_stable or not fetch.committed_only:
                fetch.grew(size)

    def check_leader_epoch(self, known_epoch: int) -> None:
        """Refuse a client whose idea of the leader epoch (-1: none) is not ours."""
        if known_epoch in (NO_EPOCH, self.log.leader_epoch):
            return
        if known_epoch < self.log.leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH, f"leader epoch {known_epoch} is over")
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH, f"leader epoch {known_epoch} has not begun")
