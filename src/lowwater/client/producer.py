"""The producer: Arrow tables and plain records to the partitions of topics.

with Producer("localhost:9092") as producer:
    producer.send_table("orders", table)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Self

from lowwater.client.arguments import check_topic
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import NOBODY as NO_MEMBER
from lowwater.client.coordinator import Identity as MemberIdentity
from lowwater.client.errors import ClientError, RequestTimeoutError
from lowwater.client.loading import WRITING, load
from lowwater.client.network import Network
from lowwater.client.producing.ending import Prepared, end_prepared
from lowwater.client.producing.face import LEAVE_MS, Face, Time, producer_config
from lowwater.client.producing.forgotten import LOG, forget, remember
from lowwater.client.producing.piles import Field, Headers
from lowwater.client.producing.reports import Failure, Placed, Report, Summary
from lowwater.client.producing.transaction_requests import Offset
from lowwater.client.threaded import ThreadedDriver
from lowwater.types import TopicPartition

__all__ = ["BlockingReport", "Failure", "Placed", "Prepared", "Producer", "Report", "Summary", "end_transaction"]


SOON_MS = 1_000
"""Waiting so long at the end needs no word."""


class BlockingReport(Report):
    def __init__(self, driver: ThreadedDriver) -> None:
        super().__init__()
        self._driver = driver

    def wait(self, timeout_ms: float | None = None) -> Self:
        """Until it is done, or the time is over: `done` says which."""
        self._driver.wait(self.settled, timeout_ms)
        self.is_asked = True
        return self


class Producer(Face):
    """Sends in a thread of its own. Any thread may call; rows of one thread keep their order."""

    def __init__(self, bootstrap: str | None = None, config: Mapping[str, object] | None = None) -> None:
        settings = producer_config(bootstrap, config)
        self._driver = ThreadedDriver(settings)
        super().__init__(settings, self._driver, self._driver.post, lambda: BlockingReport(self._driver))
        self._is_closed = False
        self._is_begun = False
        remember(self, self._leave_at_exit)

    def send(
        self,
        topic: str,
        value: Field = None,
        *,
        key: Field = None,
        headers: Headers | None = None,
        partition: int | None = None,
        timestamp: Time = None,
    ) -> BlockingReport:
        """Take one record; waits only while buffer.memory is full. Those that leave together share a report."""
        if type(topic) is not str or topic not in self._piles.open:
            check_topic(topic)
            if not self._has_room() or not self._is_begun:
                self._driver.run(self._make_room())
                self._is_begun = True
        report: BlockingReport = self._add(topic, value, key, headers, partition, timestamp)
        return report

    def send_table(self, topic: str | None, table: Any) -> BlockingReport:
        """Take the rows of a table, record batch or reader; waits only while buffer.memory is full.

        Columns are key, value, headers, partition and timestamp, as far as they are there; without `topic` also topic.
        """
        if topic is not None:
            check_topic(topic)
        report = BlockingReport(self._driver)
        self._driver.run(self._expect(report))
        try:
            for batch in load(WRITING).batches_of(table):
                self._driver.run(self._core.accept(topic, batch, report))
        finally:
            self._driver.run(self._complete(report))
        return report

    def flush(self, timeout_ms: float | None = None, *, raise_failures: bool = True) -> Summary:
        """Wait until everything taken is settled; what became of it since the last flush.

        DeliveryError, with that summary, when rows failed whose report nobody has waited for.
        """
        return self._driver.run(self._flush(raise_failures), timeout_ms)

    def init_transactions(self, timeout_ms: float | None = None) -> None:
        """Take the place of earlier producers of this transactional id; what they left open is aborted."""
        self._driver.run(self._core.init_transactions(timeout_ms))

    def begin_transaction(self, timeout_ms: float | None = None) -> None:
        """The first one initialises as well."""
        self._driver.run(self._core.begin_transaction(timeout_ms))

    def commit_transaction(self, timeout_ms: float | None = None) -> None:
        """AbortableError when something in it failed. When nobody answers in time, ask again."""
        self._driver.run(self._commit(timeout_ms))

    def abort_transaction(self, timeout_ms: float | None = None) -> None:
        """What waits is not sent; what was written will not be seen by those who read committed records."""
        self._driver.run(self._abort(timeout_ms))

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, Offset],
        group: str,
        by: MemberIdentity = NO_MEMBER,
        timeout_ms: float | None = None,
    ) -> None:
        """The group's offsets, each the next to read, are committed with the transaction or not at all."""
        self._driver.run(self._core.send_offsets(offsets, group, by, timeout_ms))

    def prepare_transaction(self) -> Prepared:
        """Wait for all rows and leave the transaction open: `end_transaction` ends it, from anywhere, any time."""
        return self._driver.run(self._prepare())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Self]:
        """Committed at the end, aborted when an exception leaves it."""
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException:
            with contextlib.suppress(ClientError):
                self.abort_transaction()
            raise

    def close(self, timeout_ms: float | None = None, *, raise_failures: bool = True) -> None:
        """Flush, within the time, and let go; what is not written by then fails. An open transaction is aborted."""
        if self._is_closed:
            return
        self._is_closed = True
        forget(self)
        try:
            self._driver.run(self._leave(raise_failures), timeout_ms)
        finally:
            self._driver.run(self._close())
            self._driver.close()

    def _leave_at_exit(self) -> None:
        """Rows are not lost because nobody closed: they have until delivery.timeout.ms, as always. Ctrl-C gives up."""
        if self._driver.is_forked or self._is_done:
            return
        try:
            with contextlib.suppress(RequestTimeoutError):
                self._driver.run(self._flush(raise_failures=True), SOON_MS)
            if not self._is_done:
                LOG.warning("a producer was not closed; waiting for rows that are not written yet")
            self.close(self._rules.delivery_ms + LEAVE_MS)
        except (ClientError, KeyboardInterrupt) as error:
            LOG.error("a producer was not closed, and rows were not written: %s", error or "interrupted")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # What went wrong in the block is the news; rows that failed besides are not.
        self.close(raise_failures=kind is None)


def end_transaction(
    prepared: Prepared,
    bootstrap: str | None = None,
    config: Mapping[str, object] | None = None,
    *,
    commit: bool = True,
    timeout_ms: float | None = None,
) -> None:
    """Commit or abort what `prepare_transaction` left open. To ask again for the same end is no error.

    FencedError: a later producer of its id, or its timeout, came first. TransactionError: it ended the other way.
    """
    settings = producer_config(bootstrap, config)
    driver = BlockingDriver(settings)
    network = Network(settings, driver)
    try:
        driver.run(end_prepared(Cluster(network), prepared, commit=commit, timeout_ms=timeout_ms))
    finally:
        network.close()
        driver.close()
