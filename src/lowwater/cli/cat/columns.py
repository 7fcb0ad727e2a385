"""Records from a fetcher's answers to stdout as columns: whole batches become text at once, no object per record.

Prints byte for byte what the printers of `layout` and `envelope` do, names of headers that are not UTF-8 aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.envelope import NEEDS_ESCAPE, TIME_KINDS, escaped, headers_field
from lowwater.cli.cat.layout import Field, headers_text
from lowwater.cli.cat.pouring import Output, Poured
from lowwater.client.columns import Held
from lowwater.client.fetching.events import Fetched
from lowwater.client.slices import Arrival
from lowwater.merge.mark import EVERYTHING
from lowwater.types import TopicPartition

BATCH_BYTES_MAX = 64 * 1024 * 1024
"""Of keys and values that become text at once; escaped as JSON they are six times as much at most."""
NO_NUMBER = -1

Part: TypeAlias = Any
"""Bytes that stand in each row, or an Arrow array of what stands there."""


class BatchPrinter:
    """Prints record batches."""

    def __init__(self, looks: Looks, broker_of: Callable[[str, int], int]) -> None:
        self._looks = looks
        self._broker_of = broker_of

    def text(self, batch: Any) -> memoryview | bytes:
        parts = self._json_parts(batch) if self._looks.is_json else self._layout_parts(batch)
        return _joined(list(parts), batch.num_rows)

    def _layout_parts(self, batch: Any) -> Iterator[Part]:
        null = self._looks.layout.null
        for piece in self._looks.layout.pieces:
            yield piece if isinstance(piece, bytes) else _field(piece, batch, null)

    def _json_parts(self, batch: Any) -> Iterator[Part]:
        kinds = pa.array(TIME_KINDS, pa.binary()).take(batch.column("timestamp_type"))
        yield from (b'{"topic":"', _field(Field.TOPIC, batch))
        yield from (b'","partition":', _field(Field.PARTITION, batch))
        yield from (b',"offset":', _field(Field.OFFSET, batch))
        yield from (b',"tstype":"', kinds)
        yield from (b'","ts":', _field(Field.TIMESTAMP, batch))
        yield from (b',"broker":', self._brokers(batch), b",")
        yield _by_row(batch.column("headers"), headers_field)
        yield from (b'"key":', *_quoted(batch.column("key")))
        yield from (b',"payload":', *_quoted(batch.column("value")), b"}", self._looks.layout.first_text)

    def _brokers(self, batch: Any) -> Any:
        brokers = np.zeros(batch.num_rows, np.int64)
        for partition, rows in _by_partition(batch):
            brokers[rows] = self._broker_of(*partition)
        return _digits(pa.array(brokers))


class ColumnSink:
    """For many records. It needs the extra, and some tenths of a second to load."""

    def __init__(self, where: Where, looks: Looks, broker_of: Callable[[str, int], int], output: Output) -> None:
        self._stop_ms = where.stop_ms
        self._printer = BatchPrinter(looks, broker_of)
        self._output = output
        self._held = Held(order=None)
        self._known: set[TopicPartition] = set()

    def pour(self, answer: Fetched, limit: int | None) -> Poured:
        poured = Poured()
        for one in answer.slices:
            if one.partition not in self._known:
                self._known.add(one.partition)
                self._held.add(one.partition, one.fetch_offset, one.fetch_offset)
        arrivals = self._held.take(answer.slices, let_go=answer.release)
        while (batch := self._held.release(EVERYTHING, bytes_max=BATCH_BYTES_MAX).batch) is not None:
            if limit is None or poured.rows < limit:
                self._print(batch, None if limit is None else limit - poured.rows, poured)
        self._output.flush()
        if limit is None or poured.rows < limit:
            expected = {one.partition: behind for one, behind in zip(answer.slices, answer.positions, strict=True)}
            _account(arrivals, expected, poured)
        return poured

    def _print(self, batch: Any, limit: int | None, poured: Poured) -> None:
        if self._stop_ms is not None:
            batch = self._before_stop(batch, self._stop_ms, poured)
        if limit is not None and batch.num_rows > limit:
            batch = batch.slice(0, limit)
        if not batch.num_rows:
            return
        self._output.write(self._printer.text(batch))
        poured.rows += batch.num_rows
        offsets = batch.column("offset").to_numpy()
        for partition, rows in _by_partition(batch):
            poured.behind[partition] = int(offsets[rows[-1]]) + 1

    def _before_stop(self, batch: Any, stop_ms: int, poured: Poured) -> Any:
        is_before = pc.less(_milliseconds(batch), stop_ms)
        rest = batch.filter(pc.invert(is_before))
        offsets = rest.column("offset").to_numpy()
        for partition, rows in _by_partition(rest):
            poured.stopped_at.setdefault(partition, int(offsets[rows[0]]))
        return batch.filter(is_before) if rest.num_rows else batch


def _account(arrivals: Sequence[Arrival], expected: Mapping[TopicPartition, int], poured: Poured) -> None:
    """How far each partition was read: not as far as it came when something is wrong, or too much for one time."""
    for arrival in arrivals:
        poured.behind[arrival.partition] = arrival.position
        if arrival.error is not None:
            poured.error = poured.error or arrival.error
        elif arrival.position != expected[arrival.partition]:
            poured.unread.add(arrival.partition)


def _joined(parts: Sequence[Part], count: int) -> memoryview | bytes:
    """All rows one behind the other."""
    if all(isinstance(part, bytes) for part in parts):
        return b"".join(parts) * count
    text = pc.binary_join_element_wise(*parts, b"")
    _, ends, data = text.buffers()
    end = int(np.frombuffer(ends, np.int32, count=text.offset + count + 1)[-1])
    return memoryview(data)[:end]


def _field(field: Field, batch: Any, null: bytes = b"") -> Part:
    match field:
        case Field.VALUE:
            return pc.fill_null(batch.column("value"), null)
        case Field.KEY:
            return pc.fill_null(batch.column("key"), null)
        case Field.VALUE_SIZE:
            return _digits(_sizes(batch.column("value")))
        case Field.KEY_SIZE:
            return _digits(_sizes(batch.column("key")))
        case Field.VALUE_SIZE_BINARY:
            packed = pa.py_buffer(_sizes(batch.column("value")).to_numpy().astype(">i4"))
            return pa.Array.from_buffers(pa.binary(4), batch.num_rows, [None, packed]).cast(pa.binary())
        case Field.TIMESTAMP:
            return _digits(_milliseconds(batch))
        case Field.TOPIC:
            return batch.column("topic").cast(pa.utf8()).cast(pa.binary())
        case Field.PARTITION:
            return _digits(batch.column("partition"))
        case Field.OFFSET:
            return _digits(batch.column("offset"))
        case Field.HEADERS:
            return _by_row(batch.column("headers"), headers_text)


def _digits(numbers: Any) -> Any:
    return numbers.cast(pa.utf8()).cast(pa.binary())


def _sizes(column: Any) -> Any:
    return pc.fill_null(pc.binary_length(column), NO_NUMBER)


def _milliseconds(batch: Any) -> Any:
    return pc.fill_null(batch.column("timestamp").cast(pa.int64()), NO_NUMBER)


def _by_row(headers: Any, text: Callable[[Any], bytes]) -> Part:
    """Most records have no headers; where some have, each is looked at."""
    if not len(headers.flatten()):
        return b""
    rows = ([(one["key"], one["value"]) for one in row] for row in headers.to_pylist())
    return pa.array([text(row) for row in rows], pa.binary())


def _quoted(column: Any) -> tuple[Part, ...]:
    data = column.buffers()[2]
    if data is not None and NEEDS_ESCAPE.search(data) is not None:
        column = pa.array([None if each is None else escaped(each) for each in column.to_pylist()], pa.binary())
    if not column.null_count:
        return (b'"', column, b'"')
    return (pc.fill_null(pc.binary_join_element_wise(b'"', column, b'"', b""), b"null"),)


def _by_partition(batch: Any) -> Iterator[tuple[TopicPartition, Any]]:
    """Each partition with the numbers of its rows, in order."""
    topics = batch.column("topic")
    codes = (topics.indices.to_numpy().astype(np.int64) << 32) | batch.column("partition").to_numpy()
    if not len(codes):
        return
    order = np.argsort(codes, kind="stable")
    first = np.flatnonzero(np.diff(codes[order], prepend=codes[order[0]] - 1))
    for rows in np.split(order, first[1:]):
        code = int(codes[rows[0]])
        yield TopicPartition(topics.dictionary[code >> 32].as_py(), code & 0xFFFFFFFF), rows
