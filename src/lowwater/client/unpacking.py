"""Decompresses the batches of one answer: into one piece of memory, used again for other answers, by two threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import accumulate

from lowwater.client.slabs import Slabs
from lowwater.types import Buffer
from lowwater.wire import compression

_FIRST_RATIO, _MOST_RATIO = 4.0, 16.0
_TO_SPARE = 1.25
_WORTH_A_THREAD_BYTES = 512 * 1024


class Ratio:
    """How many times its size an answer needs when it is unpacked, as the one before it showed.

    Memory that is much larger than what is in it is not kept for long, and fresh one has to be filled with zeros.
    """

    __slots__ = ("wished",)

    def __init__(self) -> None:
        self.wished = _FIRST_RATIO

    def learn(self, packed_bytes: int, unpacked_bytes: int) -> None:
        """So many bytes became so many."""
        self._wish(_TO_SPARE * unpacked_bytes / packed_bytes)

    def was_too_small(self) -> None:
        """There was not room for everything."""
        self._wish(2 * self.wished)

    def _wish(self, ratio: float) -> None:
        self.wished = min(max(ratio, 1.0), _MOST_RATIO)


class Unpacking:
    """`packed` are codecs and compressed bytes. The codecs let other threads run meanwhile."""

    def __init__(
        self,
        slabs: Slabs,
        packed: Sequence[tuple[int, Buffer]],
        ratio: Ratio,
        *,
        output_bytes_max: int,
        room_bytes_max: int,
    ) -> None:
        """One gives at most `output_bytes_max`. What does not fit into the common memory has some of its own."""
        self._packed = packed
        self._output_bytes_max = output_bytes_max
        self._unpacked: list[Buffer | compression.CompressionError | None] = [None] * len(packed)
        ends = [0, *accumulate(len(data) if compression.fills_room(codec) else 0 for codec, data in packed)]
        size = ends[-1]
        room: memoryview = slabs.array(min(int(ratio.wished * size), room_bytes_max)).data
        if size < _WORTH_A_THREAD_BYTES:
            self._unpack(0, len(packed), room)
        else:
            middle = next(place for place, end in enumerate(ends) if 2 * end >= size)
            at = int(ratio.wished * ends[middle])
            rest = (middle, len(packed), room[at:])
            other = threading.Thread(target=self._unpack, args=rest, name="lowwater-unpacking")
            other.start()
            self._unpack(0, middle, room[:at])
            other.join()
        self._teach(ratio)

    def _teach(self, ratio: Ratio) -> None:
        packed_bytes = unpacked_bytes = 0
        for (codec, data), unpacked in zip(self._packed, self._unpacked, strict=True):
            if isinstance(unpacked, memoryview):
                packed_bytes, unpacked_bytes = packed_bytes + len(data), unpacked_bytes + len(unpacked)
            elif unpacked is None and compression.fills_room(codec):
                ratio.was_too_small()
                return
        if packed_bytes:
            ratio.learn(packed_bytes, unpacked_bytes)

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
