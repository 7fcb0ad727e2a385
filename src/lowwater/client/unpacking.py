"""Decompresses the batches of one answer: into one piece of memory, used again for other answers, by two threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate

from lowwater.client.slabs import Slabs
from lowwater.types import Buffer
from lowwater.wire import compression

_USUAL_RATIO = 4
_WORTH_A_THREAD_BYTES = 512 * 1024


class Unpacking:
    """`packed` are codecs and compressed bytes. The codecs let other threads run meanwhile."""

    def __init__(
        self, slabs: Slabs, packed: Sequence[tuple[int, Buffer]], *, output_bytes_max: int, room_bytes_max: int
    ) -> None:
        """One gives at most `output_bytes_max`. What does not fit into the common memory has some of its own."""
        self._packed = packed
        self._output_bytes_max = output_bytes_max
        self._unpacked: list[Buffer | compression.CompressionError | None] = [None] * len(packed)
        sizes = [0, *accumulate(_USUAL_RATIO * len(data) for _, data in packed)]
        room: memoryview = slabs.array(min(sizes[-1], room_bytes_max)).data
        if sizes[-1] < _USUAL_RATIO * _WORTH_A_THREAD_BYTES:
            self._unpack(0, len(packed), room)
            return
        middle = next(place for place, size in enumerate(sizes) if 2 * size >= sizes[-1])
        first, second = room[: sizes[middle]], room[sizes[middle] :]
        other = threading.Thread(target=self._unpack, args=(middle, len(packed), second), name="lowwater-unpacking")
        other.start()
        self._unpack(0, middle, first)
        other.join()

    def _unpack(self, first: int, end: int, room: memoryview) -> None:
        for place in range(first, end):
            codec, data = self._packed[place]
            try:
                written = compression.decompress_into(codec, data, room[: self._output_bytes_max])
            except compression.CompressionError as error:
                self._unpacked[place] = error
                continue
            if written is not None:
                self._unpacked[place] = room[:written]
                room = room[written:]

    def __getitem__(self, place: int) -> Buffer:
        """The original bytes. CompressionError when they are damaged, or too many."""
        unpacked = self._unpacked[place]
        if isinstance(unpacked, compression.CompressionError):
            raise unpacked
        if unpacked is None:
            codec, data = self._packed[place]
            return compression.decompress(codec, data, limit=self._output_bytes_max)
        return unpacked
