"""Batches through the kernels into plain Python values, to compare with what other readers find in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowwater.types import Buffer
from lowwater.wire.kernels import gathering, scanning
from lowwater.wire.kernels.rows import ROW
from lowwater.wire.records import HEADER_SIZE, BatchHeader, Record

CANARY = 0x5A


class ScanFault(Exception):  # noqa: N818  (what was found)
    def __init__(self, fault: int, section: int) -> None:
        super().__init__(f"section {section}: {scanning.FAULTS[fault]}")
        self.fault = fault
        self.section = section


@dataclass
class Scanned:
    """Rows of scanned sections, and the buffers they lie in."""

    buffers: list[Any]
    rows: Any

    def records(self, order: list[int] | None = None) -> list[Record]:
        rows = self.rows if order is None else self.rows[order]
        keys, values = _fields(rows)
        fields = rows["offset"].tolist(), rows["timestamp"].tolist(), keys, values, _headers(rows)
        return [Record(*one) for one in zip(*fields, strict=True)]


def _fields(rows: Any) -> tuple[list[bytes | None], list[bytes | None]]:
    sizes = gathering.binary_sizes(rows)
    ends = [np.empty(len(rows) + 1, np.int32) for _ in range(2)]
    data = [np.full(size + 1, CANARY, np.uint8) for size in sizes[::2]]
    validity = [np.zeros((len(rows) + 7) // 8, np.uint8) for _ in range(2)]
    gathering.gather_binary(rows, ends[0], data[0][:-1], validity[0], ends[1], data[1][:-1], validity[1])
    assert data[0][-1] == data[1][-1] == CANARY, "written behind the end"
    keys, values = (_split(*one, len(rows)) for one in zip(ends, data, validity, strict=True))
    assert (keys.count(None), values.count(None)) == sizes[1::2]
    return keys, values


def _headers(rows: Any) -> list[tuple[tuple[str, bytes | None], ...]]:
    count, names_size, values_size, nulls = gathering.headers_size(rows)
    list_ends = np.empty(len(rows) + 1, np.int32)
    name_ends, value_ends = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
    names, values = np.full(names_size + 1, CANARY, np.uint8), np.full(values_size + 1, CANARY, np.uint8)
    validity = np.zeros((count + 7) // 8, np.uint8)
    gathering.gather_headers(rows, list_ends, name_ends, names[:names_size], value_ends, values[:values_size], validity)
    assert names[names_size] == values[values_size] == CANARY, "written behind the end"
    found_values = _split(value_ends, values, validity, count)
    assert found_values.count(None) == nulls
    found_names = [
        bytes(names[name_ends[one] : name_ends[one + 1]]).decode(errors="surrogateescape") for one in range(count)
    ]
    pairs = list(zip(found_names, found_values, strict=True))
    return [tuple(pairs[list_ends[one] : list_ends[one + 1]]) for one in range(len(rows))]


def _split(ends: Any, data: Any, validity: Any, count: int) -> list[bytes | None]:
    return [
        bytes(data[ends[one] : ends[one + 1]]) if validity[one >> 3] >> (one & 7) & 1 else None for one in range(count)
    ]


def section(address: int, size: int, header: BatchHeader, *, first_wanted: int = 0, tag: int = 0) -> list[int]:
    append = header.max_timestamp if header.has_log_append_time else scanning.KEEP_CREATE_TIME
    return [
        address,
        size,
        header.base_offset,
        header.base_timestamp,
        append,
        header.record_count,
        header.last_offset_delta,
        first_wanted,
        tag,
    ]


def scan_payloads(payloads: list[tuple[Buffer, BatchHeader]], *, first_wanted: int = 0) -> Scanned:
    """Scan uncompressed payloads, each as a section of its own; ScanFault when one is not right."""
    buffers = [np.frombuffer(data, np.uint8) if len(data) else np.zeros(1, np.uint8) for data, _ in payloads]
    sections = np.array(
        [
            section(buffer.ctypes.data, len(data), header, first_wanted=first_wanted, tag=tag)
            for tag, (buffer, (data, header)) in enumerate(zip(buffers, payloads, strict=True))
        ],
        np.int64,
    ).reshape(-1, scanning.SECTION_COLUMNS)
    room = sum(header.record_count for _, header in payloads)
    rows = np.empty(room, ROW)
    faults = np.zeros(len(sections), np.int32)
    found = scanning.scan(sections, faults, rows)
    for place in np.flatnonzero(faults).tolist():
        raise ScanFault(int(faults[place]), place)
    return Scanned(buffers, rows[:found])


def scan_batch(batch: Buffer, *, first_wanted: int = 0) -> Scanned:
    header = BatchHeader.parse(batch)
    return scan_payloads([(bytes(batch)[HEADER_SIZE:], header)], first_wanted=first_wanted)
