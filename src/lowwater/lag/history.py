"""The last commits of groups and how partitions grew, as far as they were seen. Pure: it is told what was observed."""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import NamedTuple

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


class _Track:
    """One group in one partition."""

    __slots__ = ("commits", "is_logged", "topic_id")

    def __init__(self) -> None:
        self.commits: deque[Commit] = deque(maxlen=COMMITS_KEPT)
        self.is_logged = False
        self.topic_id = ZERO_UUID


class History:
    """Kept by whoever watches for longer. It forgets groups and partitions that are not observed any more."""

    def __init__(self) -> None:
        self._tracks: dict[tuple[str, TopicPartition], _Track] = {}
        self._samples: dict[TopicPartition, deque[Sample]] = {}
        self.told_ms = 0
        """Up to when it knows of commits: silence after that is nobody's silence."""

    def take(self, observation: Observation) -> None:
        """What was seen next; observations come in the order of their time."""
        self.told_ms = observation.at_ms
        for one, standing in observation.partitions.items():
            if standing.end is not None:
                self._sampled(one, Sample(observation.at_ms, standing.end))
        for commit in observation.commits:
            self._logged(commit)
        for name, group in observation.groups.items():
            for one, committed in group.committed.items():
                self._seen(name, one, committed.offset, observation)
        self._forget(observation)

    def commits(self, group: str, one: TopicPartition) -> tuple[Commit, ...]:
        """The last ones, the oldest first."""
        track = self._tracks.get((group, one))
        return () if track is None else tuple(track.commits)

    def topic_id(self, group: str, one: TopicPartition) -> bytes:
        """That of the topic to which the last commit belongs; all zero when that is not known."""
        track = self._tracks.get((group, one))
        return ZERO_UUID if track is None else track.topic_id

    def samples(self, one: TopicPartition) -> tuple[Sample, ...]:
        return tuple(self._samples.get(one, ()))

    def _sampled(self, one: TopicPartition, sample: Sample) -> None:
        samples = self._samples.setdefault(one, deque(maxlen=SAMPLES_KEPT))
        if samples and sample.end < samples[-1].end:
            samples.clear()  # another log of the same name
        samples.append(sample)

    def _logged(self, commit: LoggedCommit) -> None:
        if commit.offset is None:
            self._tracks.pop((commit.group, commit.partition), None)
            return
        track = self._tracks.setdefault((commit.group, commit.partition), _Track())
        if not track.is_logged:
            track.commits.clear()
            track.is_logged = True
        if track.commits and commit.at_ms < track.commits[-1].at_ms:
            return  # read twice
        track.commits.append(Commit(commit.at_ms, commit.offset, self._end_at(commit.partition, commit.at_ms)))
        track.topic_id = commit.topic_id

    def _end_at(self, one: TopicPartition, at_ms: int) -> int | None:
        """Between two looks it grew evenly; before the first one nobody knows."""
        samples = self._samples.get(one, deque())
        if samples and 0 <= at_ms - samples[-1].at_ms <= _JUST_NOW_MS:
            return samples[-1].end
        for before, after in pairwise(samples):
            if before.at_ms <= at_ms <= after.at_ms:
                share = (at_ms - before.at_ms) / max(after.at_ms - before.at_ms, 1)
                return before.end + round((after.end - before.end) * share)
        return None

    def _seen(self, group: str, one: TopicPartition, offset: int, observation: Observation) -> None:
        """A commit that is only known by its result. Those of the log are better."""
        track = self._tracks.setdefault((group, one), _Track())
        if track.is_logged or (track.commits and track.commits[-1].offset == offset):
            return
        standing = observation.partitions.get(one)
        track.commits.append(Commit(observation.at_ms, offset, None if standing is None else standing.end))
        track.topic_id = ZERO_UUID if standing is None else standing.topic_id

    def _forget(self, observation: Observation) -> None:
        for group, one in [key for key in self._tracks if key[0] in observation.groups]:
            if observation.groups[group].fault is None and one not in observation.groups[group].committed:
                del self._tracks[group, one]
