"""Small files that are always whole: the old content or the new, never a mixture."""

from __future__ import annotations

import errno
import struct

from crc32c import crc32c

from lowwater.errors import StorageError
from lowwater.ports import Disk
from lowwater.types import Buffer

_SEAL = struct.Struct(">4sI")  # kind, CRC of what follows
NEW_SUFFIX = ".new"


DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_disk_full(error: OSError) -> bool:
    """Whether room (or a file handle) is what is missing, so that the same thing may work later."""
    return error.errno in DISK_FULL


def replace_file(disk: Disk, path: str, data: Buffer, *, durable: bool = True) -> None:
    """Put `data` at `path`; after a crash the file is the old or the new one. Durable on return, if asked for."""
    new_path = path + NEW_SUFFIX
    file = disk.open(new_path, create=True)
    try:
        file.truncate(0)
        if file.pwrite(data, 0) != len(data):
            raise StorageError(f"{path} cannot be written: no space left", retriable=True)
        if durable:
            file.sync()
    finally:
        file.close()
    disk.rename(new_path, path)
    if durable:
        disk.sync_dir(path.rpartition("/")[0])


def sync_path(disk: Disk, path: str) -> None:
    """Make the content of a file durable that is not open here."""
    file = disk.open(path)
    try:
        file.sync()
    finally:
        file.close()


def sealed(kind: bytes, data: bytes) -> bytes:
    """`data` with a checksum in front that tells whole files from damaged ones."""
    return _SEAL.pack(kind, crc32c(data)) + data


def unsealed(kind: bytes, content: bytes) -> bytes | None:
    """What was sealed, or None when the content is damaged or of another kind."""
    if len(content) < _SEAL.size:
        return None
    found, crc = _SEAL.unpack_from(content)
    data = content[_SEAL.size :]
    return data if found == kind and crc32c(data) == crc else None


def read_sealed(disk: Disk, path: str, kind: bytes) -> bytes | None:
    """The sealed content of a file; None when it is missing, unreadable or damaged."""
    try:
        return unsealed(kind, disk.read(path))
    except OSError:
        return None
