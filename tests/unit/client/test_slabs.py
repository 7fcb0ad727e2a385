"""Memory of columns: used again when they are gone, never before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lowwater.client.slabs import BYTES_MIN, Slabs

MB = 1024 * 1024


def column(slabs: Slabs, size: int, fill: int) -> Any:
    """A column of so many bytes, all of this value."""
    buffer, data = slabs.slab(size).cut(np.dtype(np.uint8), size)
    data[:] = fill
    return pa.Array.from_buffers(pa.uint8(), size, [None, buffer], 0)


def address(array: Any) -> int:
    found: int = array.buffers()[1].address
    return found


def test_memory_is_used_again_when_its_column_is_gone() -> None:
    slabs = Slabs()
    first = column(slabs, 2 * MB, 1)
    at = address(first)
    del first
    assert address(column(slabs, 2 * MB, 2)) == at


def test_columns_that_are_kept_keep_their_bytes() -> None:
    slabs = Slabs()
    kept = [column(slabs, 2 * MB, fill).slice(MB, 10) for fill in range(5)]
    assert [one.to_pylist() for one in kept] == [[fill] * 10 for fill in range(5)]


def test_one_of_several_columns_keeps_the_memory_of_all() -> None:
    slabs = Slabs()
    slab = slabs.slab(4 * MB)
    (buffer, data), (other, _) = slab.cut(np.dtype(np.uint8), 2 * MB), slab.cut(np.dtype(np.uint8), MB)
    data[:] = 7
    array = pa.Array.from_buffers(pa.uint8(), 2 * MB, [None, buffer], 0)
    del slab, data, other, buffer
    assert address(column(slabs, 4 * MB, 1)) != address(array)
    assert array[0].as_py() == 7


def test_columns_begin_where_arrow_wants_them_to() -> None:
    slab = Slabs().slab(2 * MB)
    assert [slab.cut(np.dtype(np.int64), 3)[0].address % 64 for _ in range(3)] == [0, 0, 0]


def test_much_larger_memory_is_not_used_for_little() -> None:
    slabs = Slabs()
    large = column(slabs, 32 * MB, 1)
    at = address(large)
    del large
    assert address(column(slabs, 2 * MB, 2)) != at


def test_no_more_is_kept_than_was_allowed() -> None:
    slabs = Slabs(kept_bytes_max=5 * MB)
    columns = [column(slabs, 2 * MB, 0) for _ in range(4)]
    places = {address(one) for one in columns}
    columns.clear()
    columns.append(column(slabs, 2 * MB, 0))
    assert address(columns[0]) in places
    assert slabs.kept_bytes <= 5 * MB


def test_a_little_is_arrows_own() -> None:
    before = pa.total_allocated_bytes()
    small = column(Slabs(), BYTES_MIN - 1, 1)
    assert pa.total_allocated_bytes() - before >= BYTES_MIN - 1
    assert small[0].as_py() == 1


def test_a_view_of_a_part_keeps_its_bytes() -> None:
    slabs = Slabs()
    data = slabs.array(2 * MB)
    data[:] = 5
    at, part = data.ctypes.data, data.data[10:20]
    del data
    other = slabs.array(2 * MB)
    assert other.ctypes.data != at
    assert bytes(part) == b"\5" * 10
    del part
    assert slabs.array(2 * MB).ctypes.data == at


def test_what_is_wanted_is_not_dropped_just_before() -> None:
    slabs = Slabs(kept_bytes_max=5 * MB)
    oldest, newer = column(slabs, 4 * MB, 0), column(slabs, 2 * MB, 0)
    at = address(oldest)
    del oldest, newer
    again = column(slabs, 4 * MB, 0)
    assert address(again) == at
    assert 2 * MB <= slabs.kept_bytes <= 5 * MB


def test_memory_of_about_the_same_size_is_used_again() -> None:
    slabs = Slabs()
    before = column(slabs, 3 * MB - 200_000, 0)
    at = address(before)
    del before
    assert address(column(slabs, 3 * MB - 100_000, 0)) == at
