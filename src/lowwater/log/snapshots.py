"""Producer state beside the segments: `<offset>.snapshot` is the state before that offset, all five batches of each.

Each segment begins with one, so that the state can be rebuilt although older segments are gone.
"""

from __future__ import annotations

from lowwater.log.atomic_file import read_sealed, replace_file, sealed
from lowwater.log.producers import Producers
from lowwater.ports import Disk

SNAPSHOT_SUFFIX = ".snapshot"
SNAPSHOT_KIND = b"LWP1"


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def snapshot_offsets(names: list[str]) -> list[int]:
    stems = (name.removesuffix(SNAPSHOT_SUFFIX) for name in names if name.endswith(SNAPSHOT_SUFFIX))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def write_snapshot(disk: Disk, directory: str, offset: int, producers: Producers) -> None:
    """Not durable, and need not be as long as the batches are there, from which it can be rebuilt."""
    replace_file(disk, snapshot_path(directory, offset), encode_snapshot(producers), durable=False)


def encode_snapshot(producers: Producers) -> bytes:
    return sealed(SNAPSHOT_KIND, producers.encode())


def read_snapshot(disk: Disk, directory: str, offset: int) -> Producers | None:
    data = read_sealed(disk, snapshot_path(directory, offset), SNAPSHOT_KIND)
    return None if data is None else Producers.decode(data)


def newest_snapshot(disk: Disk, directory: str, upto: int) -> tuple[int, Producers]:
    """(offset, state before it) of the last good snapshot up to `upto`; (0, nobody) when there is none."""
    for offset in reversed(snapshot_offsets(disk.listdir(directory))):
        if offset <= upto and (found := read_snapshot(disk, directory, offset)) is not None:
            return offset, found
    return 0, Producers()
