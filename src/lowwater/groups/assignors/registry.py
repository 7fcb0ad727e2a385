"""Assignors by name: our own, and those that installed packages offer as the entry points `lowwater.assignors`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol

from lowwater.groups.assignors.range import RangeAssignor
from lowwater.groups.assignors.round_robin import RoundRobinAssignor
from lowwater.groups.assignors.spec import Assignment, Assignor, Spec
from lowwater.groups.assignors.sticky import StickyAssignor, UniformAssignor
from lowwater.groups.assignors.validation import AssignorError, validated

ENTRY_POINTS = "lowwater.assignors"

_OWN: tuple[Assignor, ...] = (UniformAssignor(), RangeAssignor(), RoundRobinAssignor(), StickyAssignor())


class Distribution(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...


class EntryPoint(Protocol):
    """As `importlib.metadata` has them. What it loads is an assignor, or a class that makes one without arguments."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> str: ...

    @property
    def dist(self) -> Distribution | None: ...

    def load(self) -> Any: ...


def installed() -> Iterable[EntryPoint]:
    """What the packages of this Python offer."""
    # The import takes longer than all of the assignors; most brokers never need it.
    from importlib.metadata import entry_points

    return entry_points(group=ENTRY_POINTS)


class Registry:
    """Finds assignors by name. Those of packages are looked up when first asked for, and each is loaded once.

    One of ours cannot be replaced; of two packages with the same name the first found is taken.
    """

    def __init__(self, discover: Callable[[], Iterable[EntryPoint]] = installed) -> None:
        self._discover = discover
        self._offered: dict[str, EntryPoint] | None = None
        self._loaded: dict[str, Assignor] = {assignor.name: assignor for assignor in _OWN}
        self._broken: dict[str, str] = {}

    def names(self) -> list[str]:
        """All that can be asked for: ours first. A broken one is among them until it has failed to load."""
        return [*self._loaded, *(self._entry_points().keys() - self._loaded.keys() - self._broken.keys())]

    def __contains__(self, name: str) -> bool:
        return name in self._loaded or (name in self._entry_points() and name not in self._broken)

    def get(self, name: str) -> Assignor:
        """The assignor of that name; AssignorError when there is none or it cannot be loaded."""
        if name in self._loaded:
            return self._loaded[name]
        if name in self._broken:
            raise AssignorError(self._broken[name])
        entry_point = self._entry_points().get(name)
        if entry_point is None:
            raise AssignorError(f"there is no assignor {name!r}; there are {', '.join(self.names())}")
        try:
            self._loaded[name] = _load(entry_point)
        except Exception as error:  # a package may fail in any way, and the broker goes on
            self._broken[name] = _complaint(entry_point, "cannot be loaded", error)
            raise AssignorError(self._broken[name]) from error
        return self._loaded[name]

    def assign(self, name: str, spec: Spec) -> Assignment:
        """Assign by the assignor of that name. What a package's assignor returns is checked."""
        assignor = self.get(name)
        if assignor in _OWN:
            return assignor.assign(spec)
        try:
            return validated(spec, assignor.assign(spec))
        except Exception as error:
            raise AssignorError(_complaint(self._entry_points()[name], "failed", error)) from error

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._offered is None:
            self._offered = {}
            for entry_point in self._discover():
                self._offered.setdefault(entry_point.name, entry_point)
        return self._offered


def _load(entry_point: EntryPoint) -> Assignor:
    found = entry_point.load()
    assignor = found() if isinstance(found, type) else found
    if not callable(getattr(assignor, "assign", None)):
        raise TypeError("it has no method assign(spec)")
    if (name := getattr(assignor, "name", None)) != entry_point.name:
        raise ValueError(f"its name is {name!r}, that of its entry point {entry_point.name!r}")
    loaded: Assignor = assignor
    return loaded


def _complaint(entry_point: EntryPoint, what: str, error: Exception) -> str:
    dist = entry_point.dist
    origin = f"{dist.name} {dist.version}" if dist else "an unnamed distribution"
    reason = str(error) if isinstance(error, AssignorError) else f"{type(error).__name__}: {error}"
    return f"assignor {entry_point.name!r} ({entry_point.value}) of {origin} {what}: {reason}"


@cache
def registry() -> Registry:
    """That of this process."""
    return Registry()


def assign(request: tuple[str, Spec]) -> Assignment:
    """Assign by name, in whatever process: the work of a `Computation`."""
    name, spec = request
    return registry().assign(name, spec)
