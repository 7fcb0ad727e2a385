"""Turns an annotated class body into a message or struct: a slots class with a keyword constructor."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar, dataclass_transform

from lowwater.wire.fields import Field, default_source, field_of

T = TypeVar("T")


class Declaration:
    """What was declared: the fields, and for a message its API key, versions and first flexible version."""

    def __init__(self, lines: list[tuple[str, Any, Any]], key: int, versions: tuple[int, int], flexible: int | None):
        self._lines = lines
        self.key = key
        self.version_min, self.version_max = versions
        self.flexible_since = flexible
        self.from_client = False

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(field_of(*line) for line in self._lines)

    def is_flexible(self, version: int) -> bool:
        return self.flexible_since is not None and version >= self.flexible_since


def declaration_of(cls: type) -> Declaration:
    declared: Declaration = cls.__declared__  # type: ignore[attr-defined]
    return declared


class _Declared:
    """Base of every declared class. The constructor is compiled when the first instance is made."""

    __slots__: tuple[str, ...] = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, **values: Any) -> None:
        cls = type(self)
        cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({values})"


def _constructor(cls: type) -> Any:
    """`__init__` with every field as a keyword. Mutable defaults are made anew for each instance."""
    names: dict[str, Any] = {"missing": object()}
    parameters, body = [], []
    for field in declaration_of(cls).fields:
        default = default_source(field)
        if default is None or default == "[]":
            names[f"make_{field.name}"] = list if default else field.shape
            parameters.append(f"{field.name}=missing")
            body.append(f" self.{field.name} = make_{field.name}() if {field.name} is missing else {field.name}")
        else:
            parameters.append(f"{field.name}={default}")
            body.append(f" self.{field.name} = {field.name}")
    head = f"def __init__(self, *, {', '.join(parameters)}):" if parameters else "def __init__(self):"
    exec("\n".join([head, *(body or [" pass"])]), names)
    return names["__init__"]


def _sealed(
    cls: type[T], key: int, versions: tuple[int, int], flexible: int | None, from_client: bool = False
) -> type[T]:
    annotations = getattr(cls, "__annotations__", {})
    lines = [(name, annotation, cls.__dict__.get(name, ...)) for name, annotation in annotations.items()]
    kept = {name: value for name, value in cls.__dict__.items() if name not in annotations}
    for name in ("__dict__", "__weakref__"):
        kept.pop(name, None)
    declared = Declaration(lines, key, versions, flexible)
    declared.from_client = from_client or cls.__name__.endswith("Request")
    kept |= {"__slots__": tuple(annotations), "__declared__": declared}
    sealed: Any = type(cls.__name__, (_Declared,), kept)
    return sealed  # type: ignore[no-any-return]


@dataclass_transform(kw_only_default=True)
def message(
    *, key: int, versions: tuple[int, int], flexible: int | None, from_client: bool = False
) -> Callable[[type[T]], type[T]]:
    """Declare a request or response body: its first and last version, and the first with compact fields and tags.

    What comes from clients, as requests always do, is limited in size when it is read, and may have bytes behind it.
    """
    return lambda cls: _sealed(cls, key, versions, flexible, from_client)


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Declare a part of messages. Its fields' versions are those of the message around it."""
    return _sealed(cls, -1, (0, 0), None)
