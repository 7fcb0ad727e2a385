"""What a declared field looks like: its shape on the wire, and the versions in which it is there."""

from typing import Any, NamedTuple, TypeAlias, get_args, get_origin

ZERO_UUID = bytes(16)
VERSION_MAX = 0x7FFF


class Fixed(NamedTuple):
    """A value of constant size, packed with the struct code `code`."""

    code: str
    size: int
    zero: Any = 0


class Sized(NamedTuple):
    """A value with a length before it: "string", "bytes" or "records"."""

    name: str
    zero: Any = b""


class Array(NamedTuple):
    """A counted list of one shape."""

    item: "Shape"


Shape: TypeAlias = Fixed | Sized | Array | type


class Spec(NamedTuple):
    """What a declaration says to the right of the equals sign."""

    first: int = 0
    last: int = VERSION_MAX
    null: int | None = None
    tag: int | None = None
    default: Any = ...
    ignorable: bool = False


class Field(NamedTuple):
    """One field of a message or struct. `null` is the first version in which None may stand on the wire."""

    name: str
    shape: Shape
    first: int
    last: int
    null: int | None
    tag: int | None
    default: Any
    ignorable: bool

    @property
    def struct(self) -> type[Any] | None:
        """The class of the struct here, or of the structs in the array here."""
        shape = self.shape.item if isinstance(self.shape, Array) else self.shape
        return shape if isinstance(shape, type) else None

    def present(self, version: int) -> bool:
        return self.first <= version <= self.last

    def nullable(self, version: int) -> bool:
        return self.null is not None and self.null <= version


def field_of(name: str, annotation: Any, declared: Any) -> Field:
    """Read one line of a declaration; `declared` is a Spec, a plain default, or ... for a bare annotation."""
    spec = declared if isinstance(declared, Spec) else Spec(default=declared)
    optional = type(None) in get_args(annotation) and not hasattr(annotation, "__metadata__")
    if optional:
        (annotation,) = (each for each in get_args(annotation) if each is not type(None))
    shape = shape_of(annotation)
    # A struct in a tag has no null on the wire unless that is said: None stands for "not sent".
    wire_null = optional and not (spec.tag is not None and spec.null is None and isinstance(shape, type))
    null = (spec.first if spec.null is None else spec.null) if wire_null else None
    default = spec.default
    if default is ...:
        default = None if optional else zero_of(shape)
    return Field(name, shape, spec.first, spec.last, null, spec.tag, default, spec.ignorable)


def shape_of(annotation: Any) -> Shape:
    if hasattr(annotation, "__metadata__"):
        shape: Shape = annotation.__metadata__[0]
        return shape
    if get_origin(annotation) is list:
        return Array(shape_of(get_args(annotation)[0]))
    if isinstance(annotation, type) and hasattr(annotation, "__declared__"):
        return annotation
    hint = "; declare messages without postponed annotations" if isinstance(annotation, str) else ""
    raise TypeError(f"{annotation!r} is not a type that a message can hold{hint}")


def zero_of(shape: Shape) -> Any:
    """The value of a field that was not given: 0, "", [] …; a struct stands for its own fresh instance."""
    if isinstance(shape, Fixed | Sized):
        return shape.zero
    return [] if isinstance(shape, Array) else shape


def default_source(field: Field) -> str | None:
    """Python source of the default, or None for a struct, which has to be constructed."""
    return None if isinstance(field.default, type) else repr(field.default)


def holds_records(shape: Shape) -> bool:
    """Whether records, which are never copied, stand anywhere inside."""
    if isinstance(shape, Array):
        return holds_records(shape.item)
    if isinstance(shape, type):
        fields: tuple[Field, ...] = shape.__declared__.fields  # type: ignore[attr-defined]
        return any(holds_records(field.shape) for field in fields)
    return isinstance(shape, Sized) and shape.name == "records"
