"""Arrow rows on their way to a broker: found once by column, then written into batches of any partition."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lowwater.wire import compression
from lowwater.wire.kernels import encoding
from lowwater.wire.records import HEADER_SIZE, NO_PRODUCER_ID, BatchHeader, fill_header

_NARROW = (pa.binary(), pa.utf8())
_WIDE = (pa.large_binary(), pa.large_utf8())
_NULL = -1


class EncodedBatch(NamedTuple):
    """A batch as it is sent, and how many rows it took."""

    data: bytearray
    rows: int


class OutgoingRows:
    """The rows of a record batch with columns key, value, timestamp and headers, as far as they are there."""

    def __init__(self, batch: Any, *, now_ms: int) -> None:
        """`now_ms` is the time of rows that have none. ValueError for columns that cannot be records."""
        self._batch = batch  # keeps the addresses valid
        self._kept: list[Any] = []
        self.count: int = batch.num_rows
        self.timestamps = self._times(now_ms)
        self._key_at, self._key_size = self._field(self._column("key"))
        self._value_at, self._value_size = self._field(self._column("value"))
        self._headers = self._find_headers(self._column("headers"))

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
        starts, ends, name_at, name_size, value_at, value_size = self._headers
        body_sizes = np.empty(len(chosen), np.int32)
        sizes = self._key_size, self._value_size, starts, ends, name_size, value_size, body_sizes
        rows, size, newest = encoding.fit(chosen, first, bytes_max - HEADER_SIZE, self.timestamps, *sizes)
        data = bytearray(HEADER_SIZE + size)
        fields = self._key_at, self._key_size, self._value_at, self._value_size
        headers = starts, ends, name_at, name_size, value_at, value_size
        body = np.frombuffer(data, np.uint8)[HEADER_SIZE:]
        written = encoding.encode(chosen, first, rows, self.timestamps, *fields, *headers, body_sizes, body)
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
            base_timestamp=int(self.timestamps[chosen[first]]),
            max_timestamp=newest,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=rows,
        )
        fill_header(data, header)
        return EncodedBatch(data, rows)

    # -- finding fields

    def _column(self, name: str) -> Any:
        return self._batch.column(name) if name in self._batch.schema.names else None

    def _times(self, now_ms: int) -> Any:
        column = self._column("timestamp")
        if column is None:
            return np.full(self.count, now_ms, np.int64)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
        filled = pc.fill_null(column.cast(pa.int64()), now_ms)
        return np.array(filled.to_numpy(zero_copy_only=False))  # a copy: kernels take no read-only arrays

    def _field(self, column: Any) -> tuple[Any, Any]:
        """Addresses and sizes of a binary column."""
        if column is None or pa.types.is_null(column.type):
            return np.zeros(self.count, np.int64), np.full(self.count, _NULL, np.int32)
        return self._places(column)

    def _places(self, column: Any) -> tuple[Any, Any]:
        if column.type not in _NARROW + _WIDE:
            try:
                column = column.cast(pa.binary())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise ValueError(f"a column of {column.type} cannot be written as bytes") from error
        self._kept.append(column)
        _, offsets, data = column.buffers()
        kind = np.int32 if column.type in _NARROW else np.int64
        count = len(column)
        if not count:
            return np.empty(0, np.int64), np.empty(0, np.int32)
        places = np.frombuffer(offsets, kind, count + 1, column.offset * np.dtype(kind).itemsize).astype(np.int64)
        sizes = np.diff(places).astype(np.int32)
        if column.null_count:
            sizes[column.is_null().to_numpy(zero_copy_only=False)] = _NULL
        address = data.address if data is not None else 0
        return places[:-1] + address, sizes

    def _find_headers(self, column: Any) -> tuple[Any, ...]:
        """(first header by row, end by row, then by header: name's address, size, value's address, size)."""
        if column is None or pa.types.is_null(column.type):
            none = np.zeros(self.count, np.int32)
            at, size = np.empty(0, np.int64), np.empty(0, np.int32)
            return none, none, at, size, at, size
        if not pa.types.is_map(column.type) and not pa.types.is_list(column.type):
            raise ValueError(f"headers are a list of (key, value) or a map, not {column.type}")
        offsets = column.offsets.to_numpy()
        starts, ends = offsets[:-1].copy(), offsets[1:].copy()
        if column.null_count:
            is_null = column.is_null().to_numpy(zero_copy_only=False)
            ends[is_null] = starts[is_null]
        is_map = pa.types.is_map(column.type)
        names, values = (column.keys, column.items) if is_map else _pair(column.values)
        name_at, name_size = self._places(names)
        if (name_size < 0).any():
            raise ValueError("a header has no key")
        return starts, ends, name_at, name_size, *self._places(values)


def _pair(values: Any) -> tuple[Any, Any]:
    if not pa.types.is_struct(values.type) or values.type.num_fields != 2:
        raise ValueError(f"headers are a list of (key, value), not of {values.type}")
    names, of = values.flatten()
    return names, of
