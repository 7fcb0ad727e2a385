"""The language in which messages are declared, and the functions that read and write them.

    @message(key=8, versions=(2, 10), flexible=8)
    class OffsetCommitRequest:
        group_id: String
        generation_id: Int32 = since(1, default=-1)
        group_instance_id: String | None = since(7, null=7, default=None)
        topics: list[OffsetCommitTopic]

A field without a default has to be given, as far as the type checker is concerned; at run time it is 0, "", [] or,
when it may be null, None. A struct in a tagged field is None when it is not sent.
"""

from collections.abc import Callable
from typing import Annotated, Any, Protocol, TypeAlias, TypeVar, cast

from lowwater.types import Buffer
from lowwater.wire.declaration import Declaration, declaration_of, message, struct
from lowwater.wire.decoding import REQUEST_OBJECTS_MAX, build_decoder
from lowwater.wire.encoding import build_encoder, build_parts_encoder
from lowwater.wire.fields import ZERO_UUID, Field, Fixed, Sized, Spec, holds_records

__all__ = [
    "REQUEST_OBJECTS_MAX",
    "ZERO_UUID",
    "Bool",
    "Bytes",
    "Declaration",
    "Field",
    "Float64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Records",
    "RecordsParts",
    "String",
    "UInt16",
    "UInt32",
    "Uuid",
    "between",
    "declaration_of",
    "decoder",
    "encoder",
    "fields_of",
    "holds_records",
    "message",
    "new",
    "parts_encoder",
    "since",
    "struct",
    "tagged",
    "until",
]

T = TypeVar("T")
M = TypeVar("M", covariant=True)

Bool: TypeAlias = Annotated[bool, Fixed("?", 1, False)]
Int8: TypeAlias = Annotated[int, Fixed("b", 1)]
Int16: TypeAlias = Annotated[int, Fixed("h", 2)]
Int32: TypeAlias = Annotated[int, Fixed("i", 4)]
Int64: TypeAlias = Annotated[int, Fixed("q", 8)]
UInt16: TypeAlias = Annotated[int, Fixed("H", 2)]
UInt32: TypeAlias = Annotated[int, Fixed("I", 4)]
Float64: TypeAlias = Annotated[float, Fixed("d", 8, 0.0)]
Uuid: TypeAlias = Annotated[bytes, Fixed("16s", 16, ZERO_UUID)]
String: TypeAlias = Annotated[str, Sized("string", "")]
Bytes: TypeAlias = Annotated[bytes, Sized("bytes")]
# Batches as they are stored. Decoding gives a memoryview into the input, writable if the input was.
Records: TypeAlias = Annotated[memoryview, Sized("records")]
# The same on the wire; what is written may be several buffers in a row, which are not joined.
RecordsParts: TypeAlias = Annotated[Buffer | list[Buffer], Sized("records")]


def since(first: int, *, null: int | None = None, default: Any = ..., ignorable: bool = False) -> Any:
    """A field that exists from version `first` on, and may be None from version `null` on."""
    return Spec(first=first, null=null, default=default, ignorable=ignorable)


def until(last: int, *, null: int | None = None, default: Any = ..., ignorable: bool = False) -> Any:
    """A field that exists up to and including version `last`, and may be None from version `null` on."""
    return Spec(last=last, null=null, default=default, ignorable=ignorable)


def between(first: int, last: int, *, default: Any = ..., ignorable: bool = False) -> Any:
    """A field that exists in versions [first, last], both included."""
    return Spec(first=first, last=last, default=default, ignorable=ignorable)


def tagged(tag: int, *, since: int, null: int | None = None, default: Any = ..., ignorable: bool = False) -> Any:
    """A tagged field: left out when it has its default value, skipped by readers that do not know it.

    A struct has a mark of its being there in front, if it is one that may be None from version `null` on.
    """
    return Spec(first=since, null=null, tag=tag, default=default, ignorable=ignorable)


def new(cls: type[T]) -> T:
    """An instance with every field at its default."""
    return cls()


def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of a message or struct, in the order of the wire."""
    return declaration_of(cls).fields


class Decode(Protocol[M]):
    """Reads a body that goes from `at` to the end of the buffer. It raises WireError, whatever the bytes are."""

    def __call__(self, data: memoryview, at: int = 0) -> M: ...


def decoder(cls: type[T], version: int) -> Decode[T]:
    """The function that reads a whole body of this version."""
    return cast("Decode[T]", _built(build_decoder, cls, version))


def encoder(cls: type[T], version: int) -> Callable[[T], bytes]:
    """The function that writes a body of this version. ValueError when the message cannot be said in it."""
    return cast("Callable[[T], bytes]", _built(build_encoder, cls, version))


def parts_encoder(cls: type[T], version: int) -> Callable[[T], list[Buffer]]:
    """Like encoder, but as buffers in a row: records are referenced, never copied."""
    return cast("Callable[[T], list[Buffer]]", _built(build_parts_encoder, cls, version))


_BUILT: dict[tuple[object, type, int], object] = {}


def _built(build: Callable[[type, int], object], cls: type, version: int) -> object:
    """Codecs are made when first asked for, and kept."""
    codec = _BUILT.get((build, cls, version))
    if codec is None:
        _require(cls, version)
        codec = _BUILT[build, cls, version] = build(cls, version)
    return codec


def _require(cls: type, version: int) -> None:
    declared = declaration_of(cls)
    if not declared.version_min <= version <= declared.version_max:
        raise ValueError(f"{cls.__name__} has versions {declared.version_min} to {declared.version_max}, not {version}")
