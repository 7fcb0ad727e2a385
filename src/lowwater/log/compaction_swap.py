"""Putting compacted segments in the place of their sources, so that a crash leaves all of it or nothing.

Outputs wait under names of their own. The manifest lists which sources each of them replaces; while it exists, the swap
is repeated at every start until it is known to be durable.
"""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass

from lowwater.log.atomic_file import read_sealed, replace_file, sealed
from lowwater.log.segment import SEGMENT_SUFFIXES, segment_path
from lowwater.ports import Disk

MANIFEST = "compaction"
OUTPUT_MARK = ".cleaned"
_KIND = b"LWX1"
_HEAD = struct.Struct(">HI")
_GROUP = struct.Struct(">qBI")
_SOURCE = struct.Struct(">q")


@dataclass(frozen=True, slots=True)
class Group:
    """Segments that one output, or nothing, replaces."""

    sources: tuple[int, ...]
    base_offset: int
    has_output: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    groups: tuple[Group, ...]

    def encode(self) -> bytes:
        name = self.name.encode()
        parts = [_HEAD.pack(len(name), len(self.groups)), name]
        for group in self.groups:
            parts.append(_GROUP.pack(group.base_offset, group.has_output, len(group.sources)))
            parts += [_SOURCE.pack(one) for one in group.sources]
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """`data` comes from `encode`, under a checksum."""
        length, count = _HEAD.unpack_from(data)
        position = _HEAD.size + length
        name = data[_HEAD.size : position].decode()
        groups = []
        for _ in range(count):
            base_offset, has_output, sources = _GROUP.unpack_from(data, position)
            position += _GROUP.size
            end = position + sources * _SOURCE.size
            offsets = tuple(one for (one,) in _SOURCE.iter_unpack(data[position:end]))
            groups.append(Group(offsets, base_offset, bool(has_output)))
            position = end
        return cls(name, tuple(groups))


def output_stem(directory: str, base_offset: int, name: str) -> str:
    return f"{directory}/{base_offset:020d}-{name}{OUTPUT_MARK}"


def write_manifest(disk: Disk, directory: str, manifest: Manifest) -> None:
    """From here on the swap is decided; the sync of the directory covers the outputs' names too."""
    disk.sync_dir(directory)
    replace_file(disk, f"{directory}/{MANIFEST}", sealed(_KIND, manifest.encode()))


def swap(disk: Disk, directory: str, manifest: Manifest) -> None:
    """Rename and unlink; may be repeated. The log comes first: companions that do not fit it are ignored."""
    for group in manifest.groups:
        if group.has_output:
            stem = output_stem(directory, group.base_offset, manifest.name)
            for suffix in SEGMENT_SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    disk.rename(stem + suffix, segment_path(directory, group.base_offset, suffix))
        for base_offset in group.sources:
            if not group.has_output or base_offset != group.base_offset:
                _unlink_segment(disk, directory, base_offset)


def clear_manifest(disk: Disk, directory: str) -> None:
    """Remove the manifest of a finished swap, once the swap itself is durable."""
    if disk.exists(f"{directory}/{MANIFEST}"):
        disk.sync_dir(directory)
        disk.unlink(f"{directory}/{MANIFEST}")
        disk.sync_dir(directory)


def complete_or_undo(disk: Disk, directory: str, names: list[str]) -> bool:
    """At recovery: finish a decided swap, remove the outputs of an undecided one. Whether anything was there."""
    outputs = [name for name in names if OUTPUT_MARK in name]
    if MANIFEST not in names and not outputs:
        return False
    data = read_sealed(disk, f"{directory}/{MANIFEST}", _KIND)
    if data is not None:
        swap(disk, directory, Manifest.decode(data))
    for name in outputs:
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(f"{directory}/{name}")
    clear_manifest(disk, directory)
    return True


def undo(disk: Disk, directory: str) -> None:
    """Clean up after a compaction that failed. The outputs stay if the manifest cannot be removed: it needs them."""
    with contextlib.suppress(OSError):
        clear_manifest(disk, directory)
        for name in disk.listdir(directory):
            if OUTPUT_MARK in name:
                disk.unlink(f"{directory}/{name}")


def _unlink_segment(disk: Disk, directory: str, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            disk.unlink(segment_path(directory, base_offset, suffix))
