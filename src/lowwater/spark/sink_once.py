"""The sink that writes each row once, as Spark calls it.

A task writes in a transaction of its own and leaves it open; what it tells the driver is who may end it. Nothing of a
batch is to be seen before `commit`. The order in which that happens is `exactly_once.protocol`'s.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from lowwater.spark.exactly_once import protocol
from lowwater.spark.exactly_once.brokers import ClusterBrokers, brokers_of
from lowwater.spark.exactly_once.errors import ExactlyOnceError
from lowwater.spark.exactly_once.ids import transactional_id
from lowwater.spark.exactly_once.protocol import Plan, Step, check_time
from lowwater.spark.exactly_once.state import Intent, Transaction
from lowwater.spark.options import Once
from lowwater.spark.sink import Attempt, Writing, Written, rows_of

_TIMEOUT = "transaction.timeout.ms"
_log = logging.getLogger("lowwater.spark")


class Left(NamedTuple):
    """What a task has left to whoever commits. `transaction` is None when it had no rows, or none to write again."""

    plan: Plan
    name: str
    transaction: Transaction | None
    began_ms: int


class _WritingOnce:
    """Spark makes a writer in the process that plans a batch, and pickles it for the tasks; another one, which is never
    pickled, ends the batch. So whatever comes before the tasks is done by pickling."""

    def __init__(self, writing: Writing) -> None:
        assert writing.options.once is not None
        self._writing = writing
        self._once: Once = writing.options.once
        self._plan: Plan | None = None

    def __getstate__(self) -> dict[str, Any]:
        if self._plan is None:
            with self._brokers() as brokers:
                self._plan = protocol.plan(self._once.sink, brokers)
        return self.__dict__

    def _brokers(self) -> AbstractContextManager[ClusterBrokers]:
        return brokers_of(self._writing.options.client.settings, self._once.sink, self._once.ledger)

    def _attempt(self) -> Attempt:
        return Attempt.running()

    # ---- in a worker

    def write(self, iterator: Iterator[Any]) -> Written:
        plan, attempt = self._plan, self._attempt()
        assert plan is not None, "tasks have a writer that was pickled"
        name, batch = self._place(attempt)
        if plan.state.is_done(name, batch):
            for _ in iterator:  # Spark wants its rows to be taken
                pass
            return Written(attempt, 0, left=Left(plan, name, None, 0))
        own = transactional_id(
            plan.sink, batch, attempt.task, attempt.id, commits=plan.state.commits, epoch=plan.fence.epoch
        )
        return self._write(iterator, attempt, own, Left(plan, name, None, int(time.time() * 1000)))

    def _write(self, iterator: Iterator[Any], attempt: Attempt, own: str, left: Left) -> Written:
        from lowwater.spark.worker_producer import write_open  # drivers need neither Arrow nor the kernels

        summary, prepared = write_open(self._writing.options.client.settings, self._writing.columns, iterator, own)
        if prepared is not None:
            left = left._replace(transaction=Transaction(*prepared))
        return Written(attempt, summary.delivered, summary.partitions, left)

    def _place(self, attempt: Attempt) -> tuple[str, int]:
        """Whose batch it is, and which."""
        if self._once.run is not None:
            return f"run {self._once.run}", 0
        if attempt.batch is None or attempt.query is None:
            raise ExactlyOnceError("Spark does not tell which batch of which query a task belongs to")
        return f"query {attempt.query}", attempt.batch

    # ---- in the driver

    def _commit(self, messages: Iterable[WriterCommitMessage | None], batch: int) -> None:
        left = _left(messages)
        if not left:
            return  # no task has written anything
        plan = left[0].plan
        timeout_ms = int(self._writing.options.client.settings[_TIMEOUT])
        check_time(plan, batch, (each.began_ms for each in left), int(time.time() * 1000), timeout_ms)
        with self._brokers() as brokers:
            protocol.commit(brokers, plan, _intent(left, batch))

    def _abort(self, messages: Iterable[WriterCommitMessage | None], batch: int) -> None:
        left = _left(messages)
        if not left:
            return
        with self._brokers() as brokers:
            step = protocol.abort(brokers, left[0].plan, _intent(left, batch))
        if step is Step.FINISH:
            _log.warning("sink %s: batch %d had been committed before it failed, and is", self._once.sink, batch)


class LowwaterOnceWriter(_WritingOnce, DataSourceArrowWriter):
    """A batch query: its write is committed as a whole, and once for each `runId`."""

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._commit(messages, 0)
        _log.info("%d rows written", rows_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(messages, 0)


class LowwaterOnceStreamWriter(_WritingOnce, DataSourceStreamArrowWriter):
    """A micro-batch is committed as a whole, and once."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        self._commit(messages, batchId)
        _log.info("batch %d: %d rows written", batchId, rows_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        self._abort(messages, batchId)


def _left(messages: Iterable[WriterCommitMessage | None]) -> list[Left]:
    """Transactions that tasks have left open."""
    told = (message.left for message in messages if isinstance(message, Written))
    return [left for left in told if left is not None and left.transaction is not None]


def _intent(left: list[Left], batch: int) -> Intent:
    transactions = sorted(each.transaction for each in left if each.transaction is not None)
    return Intent(left[0].name, batch, tuple(transactions))
