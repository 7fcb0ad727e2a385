"""What a fetcher gives out: answers of brokers, and what happened to partitions, in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from lowwater.client.errors import ClientError
from lowwater.client.slices import FetchedSlice
from lowwater.types import TopicPartition


class Failed(NamedTuple):
    """A partition cannot be read. When `error` is retriable it is still tried, and this is told again after a while;
    otherwise it rests until the fetcher is told to seek or to remove it."""

    partition: TopicPartition
    error: ClientError


class Reset(NamedTuple):
    """A partition had nothing at `offset`, and is read on from `position`, as auto.offset.reset says."""

    partition: TopicPartition
    offset: int
    position: int
    log_start: int
    log_end: int

    @property
    def lost(self) -> tuple[int, int] | None:
        """[first, behind): offsets that were there or are, and are not read. None when nothing is left out."""
        return (self.offset, self.position) if self.offset < self.position else None


class Truncated(NamedTuple):
    """Records [diverged, position) were read, and are not in the log any more: a leader was lost before others had
    them. It rests until the fetcher is told to seek or to remove it. `goes_on`: as auto.offset.reset says."""

    partition: TopicPartition
    diverged: int
    position: int
    goes_on: bool


class AtEnd(NamedTuple):
    """A partition was read up to its end."""

    partition: TopicPartition
    offset: int


Event: TypeAlias = Failed | Reset | Truncated | AtEnd


class Bounds(NamedTuple):
    """A partition as its leader described it last; -1 where it does not tell."""

    log_start: int
    high_watermark: int
    last_stable: int


class Fetched(NamedTuple):
    """One answer: slices with records in them, where each of them ends, and what happened behind them.

    `release` gives the memory back that the slices lie in; it may be called more than once.
    """

    slices: list[FetchedSlice]
    positions: list[int]
    events: list[Event]
    release: Callable[[], None]
