"""Transactional producers and their readers as scripts (see `members`), one request in flight each."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench import frames, txn_frames
from bench.connection import ANSWER_TIMEOUT_S, BrokerError, connect, exchange
from bench.members import Script
from bench.txn_frames import TRANSACTIONAL, Identity, Values

CONCURRENT_TRANSACTIONS = 51
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def await_transactions(port: int) -> None:
    """Return when transactions are served; Kafka makes its internal topic when first asked for a coordinator."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), contextlib.closing(connect(port)) as connection:
            exchange(connection, txn_frames.find_coordinator("bench"))
            error, _ = txn_frames.initialized(exchange(connection, txn_frames.init_producer_id("bench")))
            if not error:
                return
        time.sleep(0.02)
    raise TimeoutError("there is no transaction coordinator")


@dataclass(slots=True)
class Producer:
    """Writes the same records again and again to one partition: `transactions` of them so far."""

    transactional_id: str
    topic: str
    partition: int
    values: Values
    who: Identity = field(default_factory=Identity)
    transactions: int = 0
    retries: int = 0

    def begin(self) -> Script:
        error = CONCURRENT_TRANSACTIONS
        while error == CONCURRENT_TRANSACTIONS:
            error, self.who = txn_frames.initialized((yield txn_frames.init_producer_id(self.transactional_id)))
        _require(error, "InitProducerId")

    def old_path(self, goes_on: Callable[[], bool], commit: Callable[[int], bool] = lambda number: True) -> Script:
        """AddPartitionsToTxn, Produce, EndTxn."""
        while goes_on():
            add = txn_frames.add_partition(self.transactional_id, self.who, self.topic, self.partition)
            # The markers of the transaction before may be on their way still.
            while (error := txn_frames.added_error((yield add))) == CONCURRENT_TRANSACTIONS:
                self.retries += 1
            _require(error, "AddPartitionsToTxn")
            batch = self.values.batch(self.who, TRANSACTIONAL)
            reply = yield txn_frames.produce(self.transactional_id, self.topic, self.partition, batch)
            _require(txn_frames.produced_error(reply, self.topic), "Produce")
            self.who = self.who.after(self.values.count)
            reply = yield txn_frames.end(self.transactional_id, self.who, commit(self.transactions))
            _require(txn_frames.ended_error(reply), "EndTxn")
            self.transactions += 1

    def new_path(self, goes_on: Callable[[], bool]) -> Script:
        """Produce, EndTxn."""
        while goes_on():
            batch = self.values.batch(self.who, TRANSACTIONAL)
            produce = txn_frames.produce_and_add(self.transactional_id, self.topic, self.partition, batch)
            while True:
                error = txn_frames.produced_and_added_error((yield produce), self.topic)
                if error != CONCURRENT_TRANSACTIONS:
                    break
                self.retries += 1
            _require(error, "Produce")
            error, self.who = txn_frames.moved_on(
                (yield txn_frames.end_and_move_on(self.transactional_id, self.who, commit=True))
            )
            _require(error, "EndTxn")
            self.transactions += 1

    def plain(self, goes_on: Callable[[], bool]) -> Script:
        """The same records with acks=all, without a transaction."""
        while goes_on():
            produce = txn_frames.produce(None, self.topic, self.partition, self.values.batch(Identity(), 0))
            _require(txn_frames.produced_error((yield produce), self.topic), "Produce")
            self.transactions += 1


@dataclass(slots=True)
class Reader:
    """Reads a partition from its start to its last stable offset, as often as it is let."""

    topic: str
    partition: int
    isolation: int
    bytes_max: int
    read_bytes: int = 0

    def script(self, goes_on: Callable[[], bool]) -> Script:
        while goes_on():
            position, end = 0, 1
            while position < end:
                ask = frames.fetch(self.topic, {self.partition: position}, self.bytes_max, isolation=self.isolation)
                reply = txn_frames.fetched((yield ask), position)
                _require(reply.error, "Fetch")
                position, end = reply.next_offset, reply.last_stable
                self.read_bytes += reply.size


def _require(error: int, request: str) -> None:
    if error:
        raise BrokerError(f"{request} answered error {error}")
