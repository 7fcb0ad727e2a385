"""The last commits of groups and how partitions grew, as far as they were seen. Pure: it is told what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from lowwater.lag.observation import LoggedCommit, Observation
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

COMMITS_KEPT = 10
"""The window over which a partition is judged."""
SAMPLES_KEPT = 60
_JUST_NOW_MS = 5_000  # commits that came while others were still being asked


class Commit(NamedTuple):
    """`end` is where the partition ended then, None when nobody looked."""

    at_ms: int
    offset: int
    end: int | None = None

    @property
    def lag(self) -> int | None:
        return None if self.end is None else max(self.end - self.offset, 0)


class Sample(NamedTuple):
    at_ms: int
    end: int


class _Track(NamedTuple):
    """One group in one partition. `seen` are commits known by their result, since those of the log."""

    logged: tuple[Commit, ...] = ()
    seen: tuple[Commit, ...] = ()
    topic_id: bytes = ZERO_UUID

    @property
    def commits(self) -> tuple[Commit, ...]:
        return (self.logged + self.seen)[-COMMITS_KEPT:]


_Key: TypeAlias = tuple[str, TopicPartition]
_NEW = _Track()


class History:
    """Kept by whoever watches for longer. It forgets groups and partitions that are not there any more.

    One thread may take observations while others read: they see what was before, or all that is new.
    """

    def __init__(self) -> None:
        self._tracks: dict[_Key, _Track] = {}
        self._samples: dict[TopicPartition, tuple[Sample, ...]] = {}
        self.told_ms = 0
        """Up to when it knows of commits: silence after that is nobody's silence."""

    def take(self, observation: Observation) -> None:
        """What was seen next; observations come in the order of their time."""
        samples, tracks = dict(self._samples), dict(self._tracks)
        for one, standing in observation.partitions.items():
            if standing.end is not None:
                samples[one] = _sampled(samples.get(one, ()), Sample(observation.at_ms, standing.end))
        for commit in observation.commits:
            _log(tracks, commit, samples.get(commit.partition, ()))
        logged = {(commit.group, commit.partition) for commit in observation.commits}
        for name, group in observation.groups.items():
            for one, committed in group.committed.items():
                if (name, one) not in logged:
                    _see(tracks, (name, one), committed.offset, observation)
        self._tracks = {key: track for key, track in tracks.items() if not _is_gone(key, observation)}
        self._samples = _needed(samples, self._tracks, observation)
        self.told_ms = (
            observation.at_ms
        )  # last: whoever reads meanwhile must not take for silence what is not there yet

    def commits(self, group: str, one: TopicPartition) -> tuple[Commit, ...]:
        """The last ones, the oldest first."""
        track = self._tracks.get((group, one))
        return () if track is None else track.commits

    def topic_id(self, group: str, one: TopicPartition) -> bytes:
        """That of the topic to which the last commit belongs; all zero when that is not known."""
        track = self._tracks.get((group, one))
        return ZERO_UUID if track is None else track.topic_id

    def samples(self, one: TopicPartition) -> tuple[Sample, ...]:
        return self._samples.get(one, ())


def _sampled(samples: tuple[Sample, ...], sample: Sample) -> tuple[Sample, ...]:
    if samples and sample.end < samples[-1].end:
        return (sample,)  # another log of the same name
    return (*samples, sample)[-SAMPLES_KEPT:]


def _log(tracks: dict[_Key, _Track], commit: LoggedCommit, samples: Sequence[Sample]) -> None:
    """It is better known than what was seen, which goes."""
    key = commit.group, commit.partition
    if commit.offset is None:
        tracks.pop(key, None)
        return
    logged = tracks.get(key, _NEW).logged
    found = Commit(commit.at_ms, commit.offset, _end_at(samples, commit.at_ms))
    if logged and (found.at_ms < logged[-1].at_ms or found[:2] == logged[-1][:2]):
        return  # read twice
    tracks[key] = _Track((*logged, found)[-COMMITS_KEPT:], (), commit.topic_id)


def _end_at(samples: Sequence[Sample], at_ms: int) -> int | None:
    """Between two looks it grew evenly; before the first one nobody knows."""
    if samples and 0 <= at_ms - samples[-1].at_ms <= _JUST_NOW_MS:
        return samples[-1].end
    for before, after in pairwise(samples):
        if before.at_ms <= at_ms <= after.at_ms:
            share = (at_ms - before.at_ms) / max(after.at_ms - before.at_ms, 1)
            return before.end + round((after.end - before.end) * share)
    return None


def _see(tracks: dict[_Key, _Track], key: _Key, offset: int, observation: Observation) -> None:
    """A commit that is only known by its result: the log is asked after the offsets, and could not be read."""
    track = tracks.get(key, _NEW)
    if track.commits and track.commits[-1].offset == offset:
        return
    standing = observation.partitions.get(key[1])
    found = Commit(observation.at_ms, offset, None if standing is None else standing.end)
    topic_id = ZERO_UUID if standing is None else standing.topic_id
    tracks[key] = _Track(track.logged, (*track.seen, found)[-COMMITS_KEPT:], topic_id)


def _is_gone(key: _Key, observation: Observation) -> bool:
    group = observation.groups.get(key[0])
    if group is None:
        return observation.is_all
    return group.fault is None and key[1] not in group.committed


def _needed(
    samples: dict[TopicPartition, tuple[Sample, ...]], tracks: Iterable[_Key], observation: Observation
) -> dict[TopicPartition, tuple[Sample, ...]]:
    if not observation.is_all:
        return samples
    needed = {one for _, one in tracks}.union(observation.partitions)
    return {one: found for one, found in samples.items() if one in needed}
