"""Collects a history from many threads: who sent what, how it ended, what each consumer saw."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from tests.crash.values import name_of

from lowwater.testing.checker import FinalRead, History, Outcome, Poll, Send
from lowwater.types import TopicPartition


class Recorder:
    """Sends keep the order of their calls. `acks` grows under `progress`, on which a test can wait."""

    def __init__(self) -> None:
        self.progress = threading.Condition()
        self.acks = 0
        self.errors: list[str] = []
        self._sends: list[Send] = []
        self._polls: list[Poll] = []

    def sending(
        self,
        producer: str,
        partition: TopicPartition,
        name: bytes,
        *,
        idempotent: bool,
        transaction: str | None = None,
    ) -> int:
        """Note a send that has begun; the ticket is for `ended`. Until then its outcome is unknown."""
        with self.progress:
            self._sends.append(Send(producer, partition, name, Outcome.UNKNOWN, None, idempotent, transaction))
            return len(self._sends) - 1

    def ended(self, ticket: int, offset: int | None, error: str | None = None) -> None:
        with self.progress:
            send = self._sends[ticket]
            if offset is not None:
                self._sends[ticket] = replace(send, outcome=Outcome.OK, offset=offset)
                self.acks += 1
            else:
                self.errors.append(f"{send.producer}: {error}")
            self.progress.notify_all()

    def aborted(self, ticket: int) -> None:
        """Its transaction will never be committed: nobody may read it."""
        with self.progress:
            self._sends[ticket] = replace(self._sends[ticket], outcome=Outcome.FAILED)

    def polled(
        self, consumer: str, partition: TopicPartition, records: list[tuple[int, bytes]], sought: int | None = None
    ) -> None:
        named = tuple((offset, name_of(value)) for offset, value in records)
        with self.progress:
            self._polls.append(Poll(consumer, partition, named, sought))

    def failed(self, who: str, error: object) -> None:
        with self.progress:
            self.errors.append(f"{who}: {error}")

    def wait_for_acks(self, more: int, timeout_s: float) -> bool:
        """Wait until `more` further sends were acked; False when that took too long."""
        with self.progress:
            goal, deadline = self.acks + more, time.monotonic() + timeout_s
            return self.progress.wait_for(lambda: self.acks >= goal, deadline - time.monotonic())

    def history(self, final: dict[TopicPartition, FinalRead]) -> History:
        with self.progress:
            return History(list(self._sends), list(self._polls), final)
