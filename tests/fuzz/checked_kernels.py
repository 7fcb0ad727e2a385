"""Hostile answers through the kernels, in a process whose arrays are bounds-checked and whose buffers end at a wall.

python -m tests.fuzz.checked_kernels SEED COUNT, with NUMBA_BOUNDSCHECK=1 and a cache of its own. A byte read behind a
buffer ends the process; an index outside an array raises.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import sys

import numpy as np
import pyarrow as pa
from numba.core import config
from tests.fuzz import hostile_batches
from tests.unit.client.fetched import P0, P1, RandomLog

from lowwater.client.columns import Held
from lowwater.client.outgoing import OutgoingRows
from lowwater.client.slices import FetchedSlice
from lowwater.merge.mark import EVERYTHING
from lowwater.wire.records import HEADER_SIZE, read_records, seal

ROOM = 4 << 20
NO_ACCESS = 0


class Wall:
    """Memory whose last byte is followed by a page that nobody may read."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, ROOM + mmap.PAGESIZE)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        libc = ctypes.CDLL(None, use_errno=True)
        wall = ctypes.c_void_p(address + ROOM)
        assert libc.mprotect(wall, ctypes.c_size_t(mmap.PAGESIZE), NO_ACCESS) == 0, os.strerror(ctypes.get_errno())

    def place(self, data: bytes) -> memoryview:
        view = memoryview(self._memory)[ROOM - len(data) : ROOM]
        view[:] = data
        return view


def hostile(chance: random.Random) -> bytes:
    """A good log with changed bytes, most under right checksums; or batches that are wrong on purpose. Some are cut."""
    if chance.random() < 0.4:
        builds = (hostile_batches.extreme_field, hostile_batches.garbage_body, hostile_batches.hostile_record)
        data = b"".join(chance.choice((*builds, hostile_batches.good, hostile_batches.torn))(chance) for _ in range(3))
    else:
        data = b"".join(changed(bytearray(one), chance) for one in RandomLog(P0, chance).batches)
    return data[: len(data) - chance.choice((0, 0, 0, chance.randrange(100)))]


def changed(batch: bytearray, chance: random.Random) -> bytearray:
    """Wherever, but often at the end: that is where the wall is."""
    for _ in range(chance.choice((0, 0, 1, 3))):
        first = chance.choice((HEADER_SIZE - 10, max(HEADER_SIZE, len(batch) - 8)))
        if first < len(batch):
            batch[chance.randrange(first, len(batch))] = chance.choice((0, 1, 0x7E, 0x7F, 0x80, 0xFF))
    if chance.random() < 0.9:
        seal(batch)
    return batch


def read(chance: random.Random, walls: tuple[Wall, Wall]) -> int:
    held = Held(order=chance.choice(("timestamp", "partition", None)), created_ms=25, output_bytes_max=1 << 20)  # type: ignore[arg-type]
    slices = []
    for one, wall in zip((P0, P1), walls, strict=True):
        held.add(one, 0, 20)
        slices.append(FetchedSlice(one, 0, wall.place(hostile(chance)), aborted=[(1, 0), (2, 5)]))
    expected = sum(arrival.rows for arrival in held.take(slices))
    rows = 0
    while (released := held.release(EVERYTHING, chance.choice((1, 7, 1000)))).batch is not None:
        released.batch.validate(full=True)
        rows += released.batch.num_rows
    assert rows == expected
    return rows


def write(chance: random.Random) -> None:
    fields = [chance.choice((None, b"", chance.randbytes(chance.choice((1, 63, 64, 9000))))) for _ in range(20)]
    headers = [[("h" * chance.randrange(70), field)] * chance.randrange(3) for field in fields]
    times = [chance.choice((0, -1, 63, 64, 1 << 40)) for _ in fields]
    kind = pa.map_(pa.utf8(), pa.binary())
    columns = {"key": fields[::-1], "value": fields, "timestamp": times, "headers": pa.array(headers, kind)}
    rows = OutgoingRows(pa.RecordBatch.from_pydict(columns), now_ms=5)
    data, count = rows.encode(np.arange(20), bytes_max=chance.choice((100, 10_000, 1 << 20)))
    assert [one.value for one in read_records(data)] == fields[:count]


def main(seed: int, count: int) -> None:
    assert config.BOUNDSCHECK == 1, "run this with NUMBA_BOUNDSCHECK=1"
    walls = Wall(), Wall()
    rows = 0
    for one in range(seed, seed + count):
        try:
            rows += read(random.Random(one), walls)
            write(random.Random(one))
        except BaseException:
            print(f"seed {one}", file=sys.stderr)
            raise
    print(f"{count} answers, {rows} rows")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
