"""Features of the cluster: each has a level in force, which clients read and administrators change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lowwater.broker.metadata_records import FeatureLevelSet
from lowwater.errors import ApiError, ErrorCode

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Feature(NamedTuple):
    """Levels [lowest, highest] are supported; the highest is in force unless another one was set."""

    name: str
    lowest: int
    highest: int


# The newer consumer protocol cannot be turned off, so its level has one value; nothing here depends on the metadata's.
FEATURES = {
    feature.name: feature
    for feature in (
        Feature(METADATA_VERSION, 7, 30),
        Feature("group.version", 1, 1),
        Feature(TRANSACTION_VERSION, 0, 2),
    )
}


class Features:
    """The levels in force. A level of 0 is the absence of the feature."""

    def __init__(self) -> None:
        self._levels = {feature.name: feature.highest for feature in FEATURES.values()}

    @property
    def transaction_version(self) -> int:
        return self._levels[TRANSACTION_VERSION]

    def in_force(self) -> Iterator[tuple[str, int]]:
        return ((name, level) for name, level in self._levels.items() if level > 0)

    def apply(self, record: FeatureLevelSet) -> None:
        self._levels[record.name] = record.level

    def altered(self) -> Iterator[FeatureLevelSet]:
        """What has to be remembered: the levels that were changed."""
        for name, level in self._levels.items():
            if level != FEATURES[name].highest:
                yield FeatureLevelSet(name, level)

    def change(self, name: str, level: int, how: int) -> FeatureLevelSet | None:
        """The record of the change, None when nothing changes; ApiError when it is not allowed."""
        problem = self._problem(name, level, how)
        if problem is not None:
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be set to level {level}: {problem}")
        return None if level == self._levels[name] else FeatureLevelSet(name, level)

    def _problem(self, name: str, level: int, how: int) -> str | None:
        if how not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return f"{how} is no kind of change"
        feature = FEATURES.get(name)
        if feature is None:
            return "there is no such feature"
        if not feature.lowest <= level <= feature.highest:
            return f"levels {feature.lowest} to {feature.highest} are supported"
        now = self._levels[name]
        if level < now and how == UPGRADE:
            return f"that is a downgrade from {now}, and none was asked for"
        if level > now and how != UPGRADE:
            return f"that is an upgrade from {now}, and a downgrade was asked for"
        return "it cannot be downgraded" if level < now and name == METADATA_VERSION else None
