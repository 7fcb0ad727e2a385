"""Batches through the kernels into plain Python values, to compare with what other readers find in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lowwater.types import Buffer
from lowwater.wire import kernels
from lowwater.wire.records import HEADER_SIZE, BatchHeader, Record

COLUMNS = (np.int64, np.int64, np.int64, np.int32, np.int64, np.int32, np.int64, np.int32, np.int32)
CANARY = 0x5A


class ScanFault(Exception):  # noqa: N818  (what was found)
    def __init__(self, fault: int, section: int) -> None:
        super().__init__(f"section {section}: {kernels.FAULTS[fault]}")
        self.fault = fault
        self.section = section


@dataclass
class Scanned:
    """Rows of scanned sections, and the buffers they lie in."""

    buffers: list[Any]
    columns: list[Any]
    rows: int

    def records(self, order: list[int] | None = None) -> list[Record]:
        rows = np.arange(self.rows) if order is None else np.array(order, np.int64)
        keys = self._binary(rows, 2, 3)
        values = self._binary(rows, 4, 5)
        headers = self._headers(rows)
        return [
            Record(int(self.columns[0][row]), int(self.columns[1][row]), keys[place], values[place], headers[place])
            for place, row in enumerate(rows)
        ]

    def _binary(self, rows: Any, at: int, size: int) -> list[bytes | None]:
        total, nulls = kernels.binary_size(self.columns[size], rows)
        ends = np.empty(len(rows) + 1, np.int32)
        data = np.full(total + 1, CANARY, np.uint8)
        validity = np.zeros((len(rows) + 7) // 8, np.uint8)
        kernels.gather_binary(self.columns[at], self.columns[size], rows, ends, data[:total], validity)
        assert data[total] == CANARY, "written behind the end"
        found = _split(ends, data, validity, len(rows))
        assert found.count(None) == nulls
        return found

    def _headers(self, rows: Any) -> list[tuple[tuple[str, bytes | None], ...]]:
        count, names_size, values_size, nulls = kernels.headers_size(self.columns[6], self.columns[7], rows)
        list_ends = np.empty(len(rows) + 1, np.int32)
        name_ends, value_ends = np.empty(count + 1, np.int32), np.empty(count + 1, np.int32)
        names, values = np.full(names_size + 1, CANARY, np.uint8), np.full(values_size + 1, CANARY, np.uint8)
        validity = np.zeros((count + 7) // 8, np.uint8)
        kernels.gather_headers(
            self.columns[6],
            self.columns[7],
            rows,
            list_ends,
            name_ends,
            names[:names_size],
            value_ends,
            values[:values_size],
            validity,
        )
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
    append = header.max_timestamp if header.has_log_append_time else kernels.KEEP_CREATE_TIME
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
    ).reshape(-1, kernels.SECTION_COLUMNS)
    room = sum(header.record_count for _, header in payloads)
    columns = [np.empty(room, kind) for kind in COLUMNS]
    rows, fault, place = kernels.scan(sections, *columns)
    if fault:
        raise ScanFault(fault, place)
    return Scanned(buffers, columns, rows)


def scan_batch(batch: Buffer, *, first_wanted: int = 0) -> Scanned:
    header = BatchHeader.parse(batch)
    return scan_payloads([(bytes(batch)[HEADER_SIZE:], header)], first_wanted=first_wanted)
