"""How much may be asked for, so that no more is held than was allowed."""

from __future__ import annotations

from collections.abc import Callable

from lowwater.client.config import ClientConfig
from lowwater.client.fetching.turns import PIECE_BYTES_MIN

_BYTES_MIN = 1024 * 1024
_GOOD_PIECE_BYTES = 4 * 1024 * 1024
_TURNS = 8


class Budget:
    """Bytes that are held, that wait to be taken, and that are on their way."""

    def __init__(
        self,
        config: ClientConfig,
        bytes_max: int,
        held_bytes: Callable[[], int],
        *,
        partition_bytes: int | None = None,
    ) -> None:
        assert bytes_max > 0, "something has to be held"
        self._bytes_max = bytes_max
        self._answer_bytes_max = _answer_bytes_max(config)
        self._partition_bytes_max = config.int("max.partition.fetch.bytes")
        self._is_partition_bytes_given = config.is_given("max.partition.fetch.bytes")
        if partition_bytes is not None:
            self._partition_bytes_max = min(self._partition_bytes_max, partition_bytes)
            self._is_partition_bytes_given = True
        self.piece_bytes_min = PIECE_BYTES_MIN
        """What is asked for of a partition at least, so that batches fit into it."""
        self._held_bytes = held_bytes
        self._least = min(_BYTES_MIN, self._answer_bytes_max, max(1, bytes_max // 16))
        self._untaken_bytes = 0
        self._reserved_bytes = 0

    def room(self, streams: int, *, is_urgent: bool) -> int:
        """How large the next answer may be; 0: not now.

        Something is always granted to the urgent: of what is held nothing may be able to go before they bring more.
        """
        free = self._bytes_max - self._held_bytes() - self._untaken_bytes - self._reserved_bytes
        share = max(self._least, self._bytes_max // (2 * max(1, streams)))
        room = min(free, share, self._answer_bytes_max)
        if room >= self._least:
            return room
        return self._least if is_urgent else 0

    def partition_bytes(self, partitions: int) -> int:
        """How much an answer may bring of one of so many partitions when it is not asked for in order of time."""
        wished = self._partition_bytes_max
        if not self._is_partition_bytes_given:
            wished = max(wished, _GOOD_PIECE_BYTES // partitions)
        return min(wished, max(self.piece_bytes_min, self._bytes_max // 2))

    @property
    def turn_bytes(self) -> int:
        """How much to ask for at a time in order of time: an answer is one of a few that are there beside what is held,
        and what the next one has to bring is known when it came."""
        return max(self._least, self._bytes_max // _TURNS)

    @property
    def piece_bytes_max(self) -> int:
        """What is asked for of a partition at most, also when it is the only one whose turn it is."""
        return self._partition_bytes_max if self._is_partition_bytes_given else self._answer_bytes_max

    def saw(self, piece_bytes: int, asked_bytes: int) -> bool:
        """An answer brought so much of one partition. Whether more of each has to be asked for from now on.

        Of only one partition an answer brings a batch that is larger than what was asked for; the others have to wait
        for their turn. Where batches are so large, answers would bring little.
        """
        if piece_bytes <= asked_bytes or piece_bytes <= self.piece_bytes_min:
            return False
        # With a little to spare, as batches differ; not with room for two, or twice as much would be held of each.
        self.piece_bytes_min = piece_bytes * 9 // 8
        return True

    def reserve(self, size: int) -> None:
        self._reserved_bytes += size

    def arrived(self, reserved: int) -> None:
        self._reserved_bytes -= reserved

    def came(self, size: int) -> None:
        self._untaken_bytes += size

    def taken(self, size: int) -> None:
        self._untaken_bytes -= size


def _answer_bytes_max(config: ClientConfig) -> int:
    """A large record comes in an answer that is larger; there is to be some room for it."""
    accepted = config.int("receive.message.max.bytes")
    return min(config.int("fetch.max.bytes"), max(accepted // 2, accepted - 1024 * 1024))
