"""Where each leader epoch began. An epoch is one run of the broker; it begins with its first batch."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

UNDEFINED = (-1, -1)


class LeaderEpochs:
    """Epochs and their start offsets, both growing."""

    __slots__ = ("_epochs", "_starts")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        for epoch, start in entries:
            self.note(epoch, start)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._epochs, self._starts, strict=True)

    def __len__(self) -> int:
        return len(self._epochs)

    @property
    def last(self) -> int:
        return self._epochs[-1] if self._epochs else -1

    def note(self, epoch: int, offset: int) -> None:
        """A batch of `epoch` begins at `offset`."""
        if epoch > self.last:
            self._epochs.append(epoch)
            self._starts.append(offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch in which `offset` was, or would be, written; -1 when there is none yet."""
        entry = bisect_right(self._starts, offset) - 1
        return self._epochs[max(entry, 0)] if self._epochs else -1

    def end_offset(self, epoch: int, current: int, current_start: int, log_end: int) -> tuple[int, int]:
        """(the largest epoch up to `epoch`, where it ends): what a client needs to see whether its history is ours.

        `current` is the running epoch, beginning at `current_start` although it may have no batch yet.
        """
        if epoch < 0 or epoch > current:
            return UNDEFINED
        if epoch == current:
            return current, log_end
        after = bisect_right(self._epochs, epoch)
        end = self._starts[after] if after < len(self._starts) else current_start
        return (self._epochs[after - 1] if after else epoch), end

    def drop_before(self, log_start: int) -> None:
        """Records below `log_start` are gone; the epoch that spans it begins there now."""
        first = bisect_right(self._starts, log_start) - 1
        if first < 0:
            return
        del self._epochs[:first], self._starts[:first]
        self._starts[0] = log_start

    def drop_from(self, log_end: int) -> None:
        """Batches from `log_end` on are gone."""
        while self._starts and self._starts[-1] >= log_end:
            self._starts.pop()
            self._epochs.pop()
