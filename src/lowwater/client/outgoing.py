"""Arrow rows on their way to a broker: found once by column, then written into batches of any partition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lowwater.client.slabs import Slabs
from lowwater.wire import compression
from lowwater.wire.kernels import encoding, partitioning, spreading
from lowwater.wire.records import HEADER_SIZE, NO_PRODUCER_ID, BatchHeader, fill_header

_NARROW = (pa.binary(), pa.utf8())
_WIDE = (pa.large_binary(), pa.large_utf8())
# Besides those with a time of day. Pandas makes floats of numbers with gaps.
_TIMES = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date64, pa.types.is_null)
_NULL = -1
_SIZE_MAX = (1 << 31) - 1


class EncodedBatch(NamedTuple):
    """A batch as it is sent, and how many rows it took."""

    data: bytearray
    rows: int


class SpreadBatch(NamedTuple):
    """Rows for one partition. `data` is their records, with room for a header before them."""

    partition: int
    chosen: Any
    data: memoryview
    base_timestamp: int
    newest: int


class OutgoingRows:
    """The rows of a record batch with columns key, value, timestamp and headers, as far as they are there."""

    def __init__(self, batch: Any, *, now_ms: int, slabs: Slabs | None = None) -> None:
        """`now_ms` is the time of rows that have none. ValueError for columns that cannot be records."""
        self._slabs = slabs or Slabs(kept_bytes_max=0)
        self._batch = batch
        self._kept: list[Any] = []  # keeps the addresses valid
        self.count: int = batch.num_rows
        self.rows = self._slabs.array(self.count * encoding.OUTGOING_ROW.itemsize).view(encoding.OUTGOING_ROW)
        """Where each row's fields lie, for kernels that choose among them."""
        self.rows[:] = 0
        self._find_times(now_ms)
        self._find("key", self.rows, self._column("key"))
        self._find("value", self.rows, self._column("value"))
        self._headers = self._find_headers(self._column("headers"))

    @property
    def timestamps(self) -> Any:
        """Milliseconds, by row."""
        return self.rows["timestamp"]

    def encode(
        self,
        chosen: Any,
        first: int = 0,
        *,
        bytes_max: int,
        codec: int = compression.NONE,
        attributes: int = 0,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = -1,
    ) -> EncodedBatch:
        """One batch of the chosen rows from the `first` of them on, with at most `bytes_max` before compression."""
        body_sizes = np.empty(len(chosen), np.int32)
        places = self.rows, self._headers, chosen, first
        rows, size, newest = encoding.fit(*places, bytes_max - HEADER_SIZE, body_sizes)
        data = bytearray(HEADER_SIZE + size)
        body = np.frombuffer(data, np.uint8)[HEADER_SIZE:]
        written = encoding.encode(*places, rows, body_sizes, body)
        assert written == size, "records are not as large as they were measured"
        del body
        if codec:
            data[HEADER_SIZE:] = compression.compress(codec, memoryview(data)[HEADER_SIZE:].toreadonly())
        header = BatchHeader(
            base_offset=0,
            batch_length=0,
            leader_epoch=-1,
            magic=2,
            crc=0,
            attributes=attributes | codec,
            last_offset_delta=rows - 1,
            base_timestamp=int(self.rows["timestamp"][chosen[first]]),
            max_timestamp=newest,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=rows,
        )
        fill_header(data, header)
        return EncodedBatch(data, rows)

    def spread(self, placed: Any, partitions: int, *, bytes_max: int) -> list[SpreadBatch]:
        """All rows as batches of the partitions where they are placed (int32 by row, UNPLACED: left out).

        Within its partition each row keeps its place. A batch has at most `bytes_max`, or one row.
        """
        batch_of, sizes = np.empty(self.count, np.int32), np.empty(self.count, np.int32)
        planned, filling = np.empty(self.count, spreading.PLANNED_BATCH), np.full(partitions, -1, np.int32)
        places = self.rows, self._headers
        count = spreading.plan(*places, placed, bytes_max - HEADER_SIZE, filling, planned, batch_of, sizes)
        planned = planned[:count].copy()
        ends, order = np.zeros(count, np.int64), np.empty(self.count, np.int64)
        partitioning.group(batch_of, ends, order)
        stops = np.cumsum(planned["size"] + HEADER_SIZE)
        starts = stops - planned["size"] - HEADER_SIZE
        data = self._slabs.array(int(stops[-1]) if count else 0)
        planned["at"], planned["rows"] = starts + (HEADER_SIZE + data.ctypes.data), 0
        spreading.write(*places, batch_of, sizes, planned)
        view = data.data
        assert not count or (planned["at"] == stops + data.ctypes.data).all(), "records are not as large as measured"
        firsts = ends - planned["rows"]
        columns = (planned["partition"], firsts, ends, starts, stops, planned["base_timestamp"], planned["newest"])
        return [
            SpreadBatch(partition, order[first:end], view[start:stop], base, newest)
            for partition, first, end, start, stop, base, newest in zip(*map(np.ndarray.tolist, columns), strict=True)
        ]

    # -- finding fields

    def _column(self, name: str) -> Any:
        return self._batch.column(name) if name in self._batch.schema.names else None

    def _find_times(self, now_ms: int) -> None:
        column = self._column("timestamp")
        if column is None:
            self.rows["timestamp"] = now_ms
            return
        self.rows["timestamp"] = pc.fill_null(_milliseconds(column), now_ms).to_numpy(zero_copy_only=False)

    def _find(self, field: str, places: Any, column: Any) -> None:
        """Address and size of each of a binary column's values."""
        at, size = places[f"{field}_at"], places[f"{field}_size"]
        if column is None or pa.types.is_null(column.type):
            size[:] = _NULL
            return
        column = _binary(field, column)
        self._kept.append(column)
        if not len(column):
            return
        _, offsets, data = column.buffers()
        kind = np.dtype(np.int32 if column.type in _NARROW else np.int64)
        ends = np.frombuffer(offsets, kind, len(column) + 1, column.offset * kind.itemsize)
        np.add(ends[:-1], np.int64(data.address if data is not None else 0), out=at)
        np.subtract(ends[1:], ends[:-1], out=size, casting="same_kind")
        if column.null_count:
            size[column.is_null().to_numpy(zero_copy_only=False)] = _NULL

    def _find_headers(self, column: Any) -> Any:
        """All headers; each row gets its first and its end among them."""
        if column is None or pa.types.is_null(column.type):
            return np.empty(0, encoding.OUTGOING_HEADER)
        if not pa.types.is_map(column.type) and not pa.types.is_list(column.type):
            raise ValueError(f"headers are a list of (key, value) or a map, not {column.type}")
        offsets = column.offsets.to_numpy()
        self.rows["first_header"], self.rows["end_header"] = offsets[:-1], offsets[1:]
        if column.null_count:
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            self.rows["end_header"][is_null] = self.rows["first_header"][is_null]
        is_map = pa.types.is_map(column.type)
        names, values = (column.keys, column.items) if is_map else _pair(column.values)
        headers = np.empty(len(names), encoding.OUTGOING_HEADER)
        self._find("name", headers, names)
        self._find("value", headers, values)
        if (headers["name_size"] < 0).any():
            raise ValueError("a header has no key")
        return headers


def _milliseconds(column: Any) -> Any:
    """Times as whole numbers; those without a zone are in UTC."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz), safe=False)
    elif not any(is_such(kind) for is_such in _TIMES):
        raise ValueError(f"the column timestamp is {kind}, not of times or whole milliseconds")
    try:
        return column.cast(pa.int64())
    except pa.ArrowException as error:
        raise ValueError(f"the column timestamp cannot be written as milliseconds: {error}") from error


def _binary(field: str, column: Any) -> Any:
    """The column as bytes."""
    if column.type in _NARROW:
        return column
    if column.type in _WIDE and (pc.max(pc.binary_length(column)).as_py() or 0) <= _SIZE_MAX:
        return column
    try:
        return column.cast(pa.binary())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ValueError(f"{field} is {column.type}, which cannot be written as bytes: cast it to a string") from error


def _pair(values: Any) -> tuple[Any, Any]:
    if not pa.types.is_struct(values.type) or values.type.num_fields != 2:
        raise ValueError(f"headers are a list of (key, value), not of {values.type}")
    names, of = values.flatten()
    return names, of
