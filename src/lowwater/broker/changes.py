"""Changes of the metadata, one after the other: decide, make durable, replay, answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lowwater.broker.metadata_log import MetadataLog
from lowwater.broker.metadata_records import Record
from lowwater.errors import ApiError, ErrorCode, StorageError
from lowwater.pending import Pending
from lowwater.ports import Offload

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What is to be written, and what is answered once that is durable."""

    records: list[Record]
    answer: T


class Changes:
    """Nothing sees a change before it is durable, so nothing that was seen is lost by a power cut."""

    def __init__(self, log: MetadataLog, offload: Offload, replay: Callable[[Record], None]) -> None:
        self._log = log
        self._offload = offload
        self._replay = replay
        self._waiting: deque[tuple[Callable[[], Decision[Any]], Pending[Any]]] = deque()
        self._busy = False

    def submit(self, decide: Callable[[], Decision[T]]) -> Pending[T]:
        """Call `decide` when no other change is under way; settle with its answer once its records hold."""
        pending: Pending[T] = Pending()
        self._waiting.append((decide, pending))
        if not self._busy:
            self._busy = True
            self._proceed()
        return pending

    def _proceed(self) -> None:
        while self._waiting:
            decide, pending = self._waiting.popleft()
            try:
                decision = decide()
            except Exception as error:
                # Whoever asked for the change learns of it; those behind it go on.
                pending.fail(error)
                continue
            if decision.records:
                self._write(decision, pending)
                return
            pending.resolve(decision.answer)
        self._busy = False

    def _write(self, decision: Decision[Any], pending: Pending[Any]) -> None:
        def done(_: None, error: BaseException | None) -> None:
            try:
                self._settle(decision, pending, error)
            finally:
                # Also when that broke: those behind it must not wait for ever.
                self._proceed()

        self._offload.submit(lambda: self._log.commit(decision.records), done)

    def _settle(self, decision: Decision[Any], pending: Pending[Any], error: BaseException | None) -> None:
        if error is None:
            for record in decision.records:
                self._replay(record)
            pending.resolve(decision.answer)
        elif isinstance(error, StorageError):
            pending.fail(ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)))
        else:
            pending.fail(error)
