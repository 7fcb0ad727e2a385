"""Generates the function that writes one version of one message.

Small pieces are collected in a list and joined once; runs of fixed-size fields, with the length that follows them, are
packed by one call, and pieces with no branch or loop between them are added to the list at one go. Records are handed
on by reference, between the joined pieces.
"""

import struct
from collections.abc import Callable
from typing import Any

from lowwater.types import Buffer
from lowwater.wire.arrays import lists_written
from lowwater.wire.declaration import declaration_of
from lowwater.wire.fields import Array, Field, Fixed, Shape, Sized, holds_records
from lowwater.wire.source import Source
from lowwater.wire.strings import string_length
from lowwater.wire.varint import SHORT_UVARINT, write_uvarint


def _refuse(what: str) -> None:
    raise ValueError(what)


def build_encoder(cls: type, version: int) -> Callable[[Any], bytes]:
    """A function from an instance of `cls` to the bytes of its body. It raises ValueError only."""
    if not holds_records(cls):
        encode: Callable[[Any], bytes] = _Encoder(cls, version).build()
        return encode
    parts = build_parts_encoder(cls, version)
    return lambda message: b"".join(parts(message))


def build_parts_encoder(cls: type, version: int) -> Callable[[Any], list[Buffer]]:
    """Like build_encoder, in pieces: records are referenced, everything between them is joined."""
    if holds_records(cls):
        parts: Callable[[Any], list[Buffer]] = _Encoder(cls, version).build()
        return parts
    encode = build_encoder(cls, version)
    return lambda message: [encode(message)]


class _Encoder:
    def __init__(self, cls: type, version: int) -> None:
        self._cls = cls
        self._version = version
        self._title = f"{cls.__name__} v{version}"
        self._flexible = declaration_of(cls).is_flexible(version)
        self._run: list[tuple[str, str]] = []
        self._pieces: list[str] = []
        self._source = Source(
            {
                "refuse": _refuse,
                "join": b"".join,
                "uvarint": write_uvarint,
                "short_uvarint": SHORT_UVARINT,
                "string_length": string_length,
                "bad_value": (struct.error, TypeError, AttributeError),
            }
        )

    def build(self) -> Any:
        source = self._source
        in_parts = holds_records(self._cls)
        with source.block("def encode(m):"):
            source.line("w = []")
            if in_parts:
                source.line("parts = []")
            with source.block("try:"):
                self._struct(self._cls, "m")
                self._flush()
                if in_parts:
                    source.line("if w: parts.append(join(w))")
                source.line("return parts" if in_parts else "return join(w)")
            with source.block("except bad_value as error:"):
                source.line(f"raise ValueError(f'{self._title} cannot be written: {{error}}') from error")
        return source.compiled("encode", f"encoder of {self._title}")

    def _struct(self, cls: type, value: str) -> None:
        tagged = []
        for field in declaration_of(cls).fields:
            name = f"{value}.{field.name}"
            if not field.present(self._version):
                self._absent(field, name)
            elif field.tag is not None:
                tagged.append(field)
            else:
                self._value(field.shape, name, field.nullable(self._version))
        if self._flexible:
            self._tags(sorted(tagged, key=lambda field: field.tag or 0), value)

    def _absent(self, field: Field, value: str) -> None:
        """A value that this version cannot carry is an error, unless the protocol says that it does not matter."""
        if not field.ignorable:
            self._source.line(f"if {differs(field, value)}: refuse('{self._title} cannot carry {field.name}')")

    def _value(self, shape: Shape, value: str, nullable: bool) -> None:
        if isinstance(shape, Fixed):
            self._run.append((shape.code, value))
        elif isinstance(shape, Sized):
            self._sized(shape.name, value, nullable)
        elif isinstance(shape, Array):
            self._array(shape.item, value, nullable)
        elif nullable:
            self._struct_or_null(shape, value)
        else:
            self._struct(shape, value)

    def _struct_or_null(self, cls: type, value: str) -> None:
        source = self._source
        name = source.fresh("v")
        source.line(f"{name} = {value}")
        self._flush()
        source.line(f"if {name} is None: w.append(b'\\xff')")
        with source.block("else:"):
            self._run.append(("b", "1"))
            self._struct(cls, name)
            self._flush()

    def _flush(self) -> None:
        """Write what is pending: the next line is in another branch or loop."""
        self._end_run()
        if len(self._pieces) == 1:
            self._source.line(f"w.append({self._pieces[0]})")
        elif self._pieces:
            self._source.line(f"w += ({', '.join(self._pieces)})")
        self._pieces.clear()

    def _end_run(self) -> None:
        """The pending run of fixed-size values is one piece."""
        if self._run:
            self._pieces.append(self._packed(self._run))
        self._run.clear()

    def _packed(self, run: list[tuple[str, str]]) -> str:
        codes = "".join(code for code, _ in run)
        values = ", ".join(value for code, value in run if code != "x")
        if not values:
            return repr(bytes(len(codes)))
        return f"short_uvarint[{values}]" if codes == "B" else f"{self._source.packer(codes)}({values})"

    def _lead(self, length: str, wide_code: str, long_form: str = "uvarint") -> None:
        """A length with the run before it; in flexible versions length + 1 as a varint, of one byte mostly."""
        if not self._flexible:
            self._run.append((wide_code, length))
            self._end_run()
            return
        n = self._source.fresh("n")
        self._source.line(f"{n} = {length} + 1")
        before = f"{self._packed(self._run)} + " if self._run else ""
        short = self._packed([*self._run, ("B", n)])
        self._pieces.append(f"{short} if {n} < 128 else {before}{long_form}({n})")
        self._run.clear()

    def _sized(self, kind: str, value: str, nullable: bool) -> None:
        source = self._source
        data, size = source.fresh("b"), source.fresh("z")
        source.line(f"{data} = {value}")
        read = f"{data} = {data}.encode(); {size} = len({data})" if kind == "string" else f"{size} = len({data})"
        if kind == "records":
            read = f"{size} = sum(map(len, {data})) if type({data}) is list else len({data})"
        if nullable:
            source.line(f"if {data} is None: {data} = b''; {size} = -1")
            source.line(f"else: {read}")
        else:
            source.line(read)
        self._lead(size, *("h", "string_length") if kind == "string" else ("i",))
        if kind == "records":
            self._records(data, size)
        else:
            self._pieces.append(data)

    def _records(self, data: str, size: str) -> None:
        self._flush()
        with self._source.block(f"if {size} > 0:"):
            self._source.line("parts.append(join(w)); w.clear()")
            self._source.line(f"parts.extend({data}) if type({data}) is list else parts.append({data})")

    def _array(self, item: Shape, value: str, nullable: bool) -> None:
        source = self._source
        items = source.fresh("a")
        source.line(f"{items} = {value}")
        if isinstance(item, Fixed):
            self._end_run()
            null = b"\0" if self._flexible else b"\xff\xff\xff\xff"
            listed = source.constant("lists", lists_written(item.code, int(self._flexible))) + f"[tuple({items})]"
            self._pieces.append(f"{null!r} if {items} is None else {listed}" if nullable else listed)
            return
        self._lead(f"(-1 if {items} is None else len({items}))" if nullable else f"len({items})", "i")
        self._flush()
        each = source.fresh("o")
        with source.block(f"for {each} in {items} or ():" if nullable else f"for {each} in {items}:"):
            self._value(item, each, nullable=False)
            self._flush()

    def _tags(self, tagged: list[Field], value: str) -> None:
        source = self._source
        if not tagged:
            self._run.append(("x", ""))
            return
        present = [differs(field, f"{value}.{field.name}") for field in tagged]
        run, pieces = [*self._run], [*self._pieces]
        with source.block(f"if {' or '.join(present)}:"):
            self._flush()
            outer, sections = source.fresh("w"), source.fresh("t")
            source.line(f"{outer} = w; {sections} = []")
            for field, condition in zip(tagged, present, strict=True):
                with source.block(f"if {condition}:"):
                    self._tag(field, f"{value}.{field.name}", sections)
            source.line(f"w = {outer}; w += (uvarint(len({sections})), join({sections}))")
        self._run, self._pieces = [*run, ("x", "")], pieces
        with source.block("else:"):
            self._flush()

    def _tag(self, field: Field, value: str, sections: str) -> None:
        source = self._source
        data = source.fresh("b")
        source.line("w = []")
        if isinstance(field.shape, type) and field.nullable(self._version):
            self._marked_struct(field.shape, value)
        else:
            self._value(field.shape, value, field.nullable(self._version))
        self._flush()
        source.line(f"{data} = join(w)")
        source.line(f"{sections}.append(uvarint({field.tag}) + uvarint(len({data})) + {data})")

    def _marked_struct(self, cls: type, value: str) -> None:
        """In a tag, a struct that may be null has a 0 or a 1 in front; elsewhere it is -1 or 1."""
        with self._source.block(f"if {value} is None:"):
            self._source.line("w.append(b'\\0')")
        with self._source.block("else:"):
            self._run.append(("b", "1"))
            self._struct(cls, value)
            self._flush()


def differs(field: Field, value: str) -> str:
    """Source of a condition: this field does not have its default value."""
    if isinstance(field.shape, Array):
        return value if field.null is None else f"{value} != {field.default!r}"
    if isinstance(field.shape, type):
        inner = [differs(each, f"{value}.{each.name}") for each in declaration_of(field.shape).fields]
        unlike = " or ".join(inner)
        return (
            f"({value} is None or {unlike})" if field.default is not None else f"({value} is not None and ({unlike}))"
        )
    return f"{value} is not None" if field.default is None else f"{value} != {field.default!r}"
