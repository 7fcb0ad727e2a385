"""Generates the function that reads one version of one message.

The source is flat: structs are read in line, runs of fixed-size fields with one unpack, and the length of a string or
array is read by the run before it. A string that reaches past the end is cut short by slicing and moves the position
past the end, so every later read fails, and so does the comparison with the size that ends every decoder.
"""

import struct
from collections.abc import Callable
from typing import Any

from lowwater.errors import WireError
from lowwater.types import Buffer
from lowwater.wire.declaration import declaration_of
from lowwater.wire.fields import Array, Field, Fixed, Shape, Sized, default_source, holds_records
from lowwater.wire.source import Source
from lowwater.wire.varint import long_string, rest_of_uvarint, skip_tags

# Objects one message may bring into being (array elements, counted at every depth), whatever its size.
OBJECTS_MAX = 1_000_000


class _ArrayReaders(dict[int, Callable[[Buffer, int], tuple[Any, ...]]]):
    """unpack_from for arrays of one fixed-size type, by count; made when first met."""

    def __init__(self, code: str) -> None:
        self._code = code

    def __missing__(self, count: int) -> Callable[[Buffer, int], tuple[Any, ...]]:
        reader = struct.Struct(">" + self._code * count if "s" in self._code else f">{count}{self._code}").unpack_from
        if len(self) < 256:
            self[count] = reader
        return reader


_ARRAYS: dict[str, _ArrayReaders] = {}


def _fail(what: str) -> None:
    raise WireError(what)


def build_decoder(cls: type, version: int) -> Callable[[Buffer], Any]:
    """A function from the bytes of a whole body to an instance of `cls`. It raises WireError only."""
    return _Decoder(cls, version).build()


class _Decoder:
    def __init__(self, cls: type, version: int) -> None:
        self._cls = cls
        self._version = version
        self._flexible = declaration_of(cls).is_flexible(version)
        self._zero_copy = holds_records(cls)
        self._run: list[tuple[str, str]] = []
        self._source = Source(
            {
                "WireError": WireError,
                "fail": _fail,
                "new": object.__new__,
                "rest_of_uvarint": rest_of_uvarint,
                "long_string": long_string,
                "skip_tags": skip_tags,
                "bad_input": (struct.error, IndexError, UnicodeDecodeError),
            }
        )

    def build(self) -> Callable[[Buffer], Any]:
        source = self._source
        title = f"{self._cls.__name__} v{self._version}"
        with source.block("def decode(buf):"):
            source.line(
                "if type(buf) is not memoryview: buf = memoryview(buf)" if self._zero_copy else "buf = bytes(buf)"
            )
            source.line(f"size = len(buf); p = 0; room = {OBJECTS_MAX}")
            with source.block("try:"):
                self._struct(self._cls, "m")
                self._flush()
                source.line(f"if p != size: fail('{title} has bytes left over' if p < size else '{title} ends early')")
                source.line("return m")
            with source.block("except bad_input as error:"):
                source.line(f"raise WireError(f'{title} cannot be read: {{error}}') from error")
        decode: Callable[[Buffer], Any] = source.compiled("decode", f"decoder of {title}")
        return decode

    def _struct(self, cls: type, target: str) -> None:
        self._source.line(f"{target} = new({self._source.constant('C', cls)})")
        fields = declaration_of(cls).fields
        tagged = [field for field in fields if field.tag is not None and field.present(self._version)]
        for field in fields:
            if field not in tagged and field.present(self._version):
                self._value(field.shape, f"{target}.{field.name}", field.nullable(self._version))
            else:
                self._default(field, f"{target}.{field.name}")
        if self._flexible:
            self._tags(tagged, target)

    def _default(self, field: Field, target: str) -> None:
        source = default_source(field)
        self._source.line(f"{target} = {source or self._source.constant('C', field.shape) + '()'}")

    def _value(self, shape: Shape, target: str, nullable: bool) -> None:
        if isinstance(shape, Fixed):
            self._run.append((shape.code, target))
        elif isinstance(shape, Sized):
            self._sized(shape.name, target, nullable)
        elif isinstance(shape, Array):
            self._array(shape.item, target, nullable)
        else:
            self._nested(shape, target, nullable)

    def _flush(self) -> None:
        """Read the pending run of fixed-size values with one unpack."""
        codes = "".join(code for code, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        self._run.clear()
        if codes == "B":
            self._source.line(f"{targets} = buf[p]; p += 1")
        elif codes:
            self._source.line(
                f"({targets},) = {self._source.unpacker(codes)}(buf, p); p += {struct.calcsize('>' + codes)}"
            )

    def _lead(self, wide_code: str) -> str:
        """Read a length with the run before it. In flexible versions it is the first byte of length + 1 as a varint."""
        name = self._source.fresh("n")
        self._run.append(("B" if self._flexible else wide_code, name))
        self._flush()
        return name

    def _sized(self, kind: str, target: str, nullable: bool) -> None:
        source = self._source
        n = self._lead("h" if kind == "string" else "i")
        null = f"{n} == 0" if self._flexible else f"{n} == -1"
        if nullable:
            with source.block(f"if {null}:"):
                source.line(f"{target} = None")
            with source.block("else:"):
                self._sized_body(kind, target, n)
        else:
            self._sized_body(kind, target, n)

    def _sized_body(self, kind: str, target: str, n: str) -> None:
        source = self._source
        end = f"p + {n} - 1" if self._flexible else f"p + {n}"
        if kind == "string" and self._flexible:
            source.line(f"if not 0 < {n} < 128: {n}, p = long_string(buf, p, {n})")
        elif self._flexible:
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"if {n} == 0: fail('null where bytes are required')")
        else:
            source.line(f"if {n} < 0: fail(f'a length of {{{n}}}')")
        source.line(f"q = {end}")
        if kind == "string":
            text = "str(buf[p:q], 'utf-8')" if self._zero_copy else "buf[p:q].decode()"
            source.line(f"{target} = {text}; p = q")
            return
        source.line("if q > size: fail(f'{q - p} bytes announced, {size - p} left')")
        source.line(f"{target} = buf[p:q]; p = q" if kind == "records" else f"{target} = bytes(buf[p:q]); p = q")

    def _array(self, item: Shape, target: str, nullable: bool) -> None:
        source = self._source
        n = self._lead("i")
        if self._flexible:
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"{n} -= 1")
        if nullable:
            with source.block(f"if {n} == -1:"):
                source.line(f"{target} = None")
            with source.block("else:"):
                self._array_body(item, target, n)
        else:
            self._array_body(item, target, n)

    def _array_body(self, item: Shape, target: str, n: str) -> None:
        source = self._source
        bytes_min = smallest(item, self._version, self._flexible)
        room = f"{n} * {bytes_min}" if bytes_min > 1 else n
        source.line(
            f"if not 0 <= {room} <= size - p or {n} > room: fail(f'a count of {{{n}}} with {{size - p}} bytes left')"
        )
        source.line(f"room -= {n}")
        if isinstance(item, Fixed):
            readers = source.constant("A", _ARRAYS.setdefault(item.code, _ArrayReaders(item.code)))
            source.line(f"{target} = list({readers}[{n}](buf, p)); p += {room}")
            return
        items, each = source.fresh("a"), source.fresh("o")
        source.line(f"{target} = {items} = []")
        with source.block(f"for _ in range({n}):"):
            self._value(item, each, nullable=False)
            self._flush()
            source.line(f"{items}.append({each})")

    def _nested(self, cls: type, target: str, nullable: bool) -> None:
        source = self._source
        if not nullable:
            name = source.fresh("o") if "." in target else target
            self._struct(cls, name)
            if name != target:
                source.line(f"{target} = {name}")
            return
        marker = source.fresh("n")
        self._run.append(("b", marker))
        self._flush()
        with source.block(f"if {marker} < 0:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self._nested(cls, target, nullable=False)
            self._flush()

    def _tags(self, tagged: list[Field], target: str) -> None:
        source = self._source
        n = self._lead("B")
        if not tagged:
            source.line(f"if {n}: p = skip_tags(buf, p, {n})")
            return
        tag, length, end = source.fresh("t"), source.fresh("l"), source.fresh("e")
        with source.block(f"if {n}:"):
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"if {n} > size - p: fail(f'{{{n}}} tagged fields in {{size - p}} bytes')")
            with source.block(f"for _ in range({n}):"):
                for name in (tag, length):
                    source.line(f"{name} = buf[p]; p += 1")
                    source.line(f"if {name} > 127: {name}, p = rest_of_uvarint(buf, p, {name})")
                source.line(f"{end} = p + {length}")
                source.line(f"if {end} > size: fail(f'{{{length}}} bytes announced, {{size - p}} left')")
                for field in tagged:
                    with source.block(f"{'if' if field is tagged[0] else 'elif'} {tag} == {field.tag}:"):
                        self._value(field.shape, f"{target}.{field.name}", field.nullable(self._version))
                        self._flush()
                        source.line(f"if p != {end}: fail('{field.name} does not fill its tagged field')")
                source.line(f"else: p = {end}")


def smallest(shape: Shape, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this shape can take."""
    if isinstance(shape, Fixed):
        return shape.size
    if isinstance(shape, Sized):
        return 1 if flexible else 2 if shape.name == "string" else 4
    if isinstance(shape, Array):
        return 1 if flexible else 4
    fields = [each for each in declaration_of(shape).fields if each.tag is None and each.present(version)]
    inner = (
        1 if isinstance(f.shape, type) and f.nullable(version) else smallest(f.shape, version, flexible) for f in fields
    )
    return sum(inner) + flexible
