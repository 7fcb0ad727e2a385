"""Bytes to frames. Small ones are parsed where they were received; a large one is received in place, on its own."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from lowwater.client.buffers import Buffers, Lease
from lowwater.errors import WireError

SCRATCH_BYTES = 64 * 1024
_SIZE = Struct(">i")
_SPOKEN = {"TLS": (b"\x15\x03", b"\x16\x03"), "HTTP": (b"HTTP",), "SSH": (b"SSH-",)}


class Frame(NamedTuple):
    """What follows the length. Without a lease it is gone with the next bytes that arrive."""

    body: memoryview
    lease: Lease | None


class Inbox:
    """Offers `room`, is told what was `received` there, and gives the frames that are whole."""

    def __init__(self, buffers: Buffers, frame_bytes_max: int) -> None:
        self._buffers = buffers
        self._frame_bytes_max = frame_bytes_max
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._end = 0  # of what was received in the scratch, from its beginning on
        self._large: Lease | None = None
        self._have = 0  # of the large frame

    def room(self) -> memoryview:
        if self._large is not None:
            return self._large.view[self._have :]
        return self._scratch[self._end :]

    def received(self, count: int) -> Iterator[Frame]:
        """The frames that are whole now; all of them have to be taken. WireError for a length that cannot be."""
        large = self._large
        if large is None:
            self._end += count
            yield from self._in_scratch()
            return
        self._have += count
        if self._have == len(large.view):
            self._large = None
            yield Frame(large.view, large)

    def _in_scratch(self) -> Iterator[Frame]:
        at, end = 0, self._end
        while end - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._scratch, at)
            if not 0 <= size <= self._frame_bytes_max:
                raise WireError(self._oddity(size, bytes(self._scratch[at : at + _SIZE.size])))
            first, behind = at + _SIZE.size, at + _SIZE.size + size
            if behind > end:
                if size + _SIZE.size > SCRATCH_BYTES:
                    self._begin_large(self._scratch[first:end], size)
                    at = end
                break
            yield Frame(self._scratch[first:behind], None)
            at = behind
        rest = bytes(self._scratch[at:end]) if at < end else b""
        self._scratch[: len(rest)] = rest
        self._end = len(rest)

    def _oddity(self, size: int, head: bytes) -> str:
        """Where a length should stand, other protocols begin with their name."""
        for spoken, heads in _SPOKEN.items():
            if head.startswith(heads):
                return f"it speaks {spoken}"
        return f"an answer of {size} bytes; at most {self._frame_bytes_max} are accepted"

    def _begin_large(self, first: memoryview, size: int) -> None:
        self._large = self._buffers.lease(size)
        self._large.view[: len(first)] = first
        self._have = len(first)
