"""Producer state beside the segments: `<offset>.snapshot` is the state before that offset, all five batches of each.

Each segment begins with one, so that the state can be rebuilt although older segments are gone.
"""

from __future__ import annotations

import contextlib

from lowwater.errors import StorageError
from lowwater.log.atomic_file import read_sealed, replace_file, sealed
from lowwater.log.batches import DamagedBatchError, headers
from lowwater.log.producers import Producers
from lowwater.log.segment import Segment
from lowwater.ports import Disk

SNAPSHOT_SUFFIX = ".snapshot"
SNAPSHOT_KIND = b"LWP1"


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def snapshot_offsets(names: list[str]) -> list[int]:
    stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def write_snapshot(disk: Disk, directory: str, offset: int, producers: Producers, *, durable: bool = False) -> None:
    """Need not be durable as long as the batches are there, from which it can be rebuilt."""
    replace_file(disk, snapshot_path(directory, offset), sealed(SNAPSHOT_KIND, producers.encode()), durable=durable)


def read_snapshot(disk: Disk, directory: str, offset: int) -> Producers | None:
    data = read_sealed(disk, snapshot_path(directory, offset), SNAPSHOT_KIND)
    return None if data is None else Producers.decode(data)


def secure_snapshot(disk: Disk, directory: str, start: int, producers: Producers, *, is_current: bool) -> None:
    """Before the segments below `start` go: what producers did there must be known without them.

    `producers` is the state now; it is the state at `start` when nothing follows (`is_current`), else that is on disk.
    """
    try:
        if is_current:
            write_snapshot(disk, directory, start, producers, durable=True)
        elif disk.exists(snapshot_path(directory, start)):
            _sync(disk, directory, start)
        for offset in snapshot_offsets(disk.listdir(directory)):
            if offset < start:
                disk.unlink(snapshot_path(directory, offset))
    except OSError as error:
        raise StorageError(f"{directory}: the producer snapshot is not durable: {error}", retriable=True) from error


def _sync(disk: Disk, directory: str, offset: int) -> None:
    file = disk.open(snapshot_path(directory, offset))
    try:
        file.sync()
    finally:
        file.close()
    disk.sync_dir(directory)


def replay(producers: Producers, segments: list[Segment], start: int, end: int, now_ms: int) -> None:
    """Add the batches in [start, end). Damage ends it: what cannot be read cannot be repeated either."""
    for segment in segments:
        if segment.next_offset <= start or segment.base_offset >= end or not segment.size:
            continue
        view = segment.handle.mapped(segment.size)
        begin = segment.index.position_before(start - segment.base_offset) if start > segment.base_offset else 0
        with contextlib.suppress(DamagedBatchError):
            for _, header in headers(view, begin, segment.size):
                if header.producer_id >= 0 and start <= header.base_offset < end:
                    append_time = header.has_log_append_time
                    producers.note(
                        header, header.base_offset, header.max_timestamp, now_ms, log_append_time=append_time
                    )
