"""The producer of a Python worker, and how the rows of a task are written by it."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lowwater.client.errors import BadRowsError, ClientError
from lowwater.client.producer import BlockingReport, Prepared, Producer
from lowwater.client.producing.reports import Summary
from lowwater.spark.kept import Kept
from lowwater.spark.sink_columns import WrittenColumns

ABANDON_MS = 1_000
"""How long a producer that a task has done with may take to be closed: what it has not sent by then is not sent."""
GATHERED_BYTES = 4 * 1024 * 1024
"""Spark's batches have few rows: put together, those of one partition fill batches of records."""


def write_rows(settings: Mapping[str, str], columns: WrittenColumns, batches: Iterable[Any]) -> Summary:
    """Write them all; where they are. DeliveryError when one could not be, ClientError when nothing can be."""
    rows = _gathered(_rows(columns, batches))
    first = next(rows, None)
    if first is None:
        return Summary()  # of many empty tasks none connects
    producer = _producers.get(settings)
    try:
        written = _deliver(producer, columns.topic, first, rows)
    except BaseException:
        # What waits in it belongs to a task that failed: the next attempt writes it again.
        _producers.forget(settings)
        raise
    _producers.used(settings)
    return written


def write_open(
    settings: Mapping[str, str], columns: WrittenColumns, batches: Iterable[Any], transactional_id: str
) -> tuple[Summary, Prepared | None]:
    """Write them all in a transaction, and leave it open; None when there are no rows. What fails aborts it."""
    rows = _gathered(_rows(columns, batches))
    first = next(rows, None)
    if first is None:
        return Summary(), None
    producer = Producer(config={**settings, "transactional.id": transactional_id})
    try:
        producer.begin_transaction()
        written = _deliver(producer, columns.topic, first, rows)
        return written, producer.prepare_transaction()
    finally:
        _abandon(producer)  # what is not prepared is aborted by that


def _deliver(producer: Producer, topic: str | None, first: Any, rest: Iterator[Any]) -> Summary:
    """A failure is raised while rows still come: there is no use in going on."""
    total, waiting = Summary(), deque([producer.send_table(topic, first)])
    for table in rest:
        waiting.append(producer.send_table(topic, table))
        while waiting and waiting[0].done:
            _count(waiting.popleft(), total)
    for report in waiting:
        _count(report.wait(), total)
    return total


def _count(report: BlockingReport, total: Summary) -> None:
    report.raise_failures()
    total.add(report)


def _rows(columns: WrittenColumns, batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        if not batch.num_rows:
            continue
        rows = batch.select(list(columns.places))
        _check(rows)
        yield rows


def _gathered(batches: Iterator[Any]) -> Iterator[Any]:
    held: list[Any] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= GATHERED_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _check(rows: Any) -> None:
    """What the producer would take otherwise than the connector does."""
    names = rows.schema.names
    if "topic" in names and rows.column("topic").null_count:
        raise BadRowsError("null topic present in the data; the option topic says where rows without one go")
    if "partition" in names and (least := pc.min(rows.column("partition")).as_py()) is not None and least < 0:
        raise BadRowsError(f"Invalid partition {least} present in the data; null lets the key choose")


def _abandon(producer: Producer) -> None:
    with contextlib.suppress(ClientError):
        producer.close(ABANDON_MS, raise_failures=False)


_producers: Kept[Producer] = Kept(lambda settings: Producer(config=settings), _abandon)
