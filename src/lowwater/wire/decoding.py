"""Generates the function that reads one version of one message.

The source is flat: structs are read in line, runs of fixed-size fields with one unpack. The length of a string or array
is read with the run before it, a string or a list of numbers with the run after it. Unpacking checks the bounds.
"""

import struct
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

from lowwater.errors import WireError
from lowwater.wire.arrays import SHORT, list_reader
from lowwater.wire.declaration import declaration_of
from lowwater.wire.fields import Array, Field, Fixed, Shape, Sized, default_source, holds_records
from lowwater.wire.source import Source
from lowwater.wire.strings import long_string, text_unpackers
from lowwater.wire.varint import TAGS_MAX, rest_of_uvarint, skip_tags

# Array elements and tagged fields of one request, at all depths together, however large it is. Ten times what a client
# of ten thousand partitions sends; with the objects of the answer it comes to some 100 MiB and a second of work.
REQUEST_OBJECTS_MAX = 100_000
# A response comes from a broker that the user chose, and describes everything it has.
RESPONSE_OBJECTS_MAX = 10_000_000
USUAL_COUNTS = (1, 3)


class _PendingText(NamedTuple):
    """A string that is read together with the run after it."""

    target: str
    lead: str


class _PendingList(NamedTuple):
    """A list of fixed-size values that is read together with the run after it."""

    item: Fixed
    target: str
    lead: str


def build_decoder(cls: type, version: int) -> Callable[..., Any]:
    """A function from a buffer, and where in it the body starts (0), to an instance of `cls`. It raises WireError only.

    The body is all the rest of the buffer.
    """
    return _Decoder(cls, version).build()


def _fail(what: str) -> None:
    raise WireError(what)


class _Decoder:
    def __init__(self, cls: type, version: int) -> None:
        self._cls = cls
        self._version = version
        self._flexible = declaration_of(cls).is_flexible(version)
        self._zero_copy = holds_records(cls)
        self._from_client = declaration_of(cls).from_client
        self._before: _PendingText | _PendingList | None = None
        self._run: list[tuple[str, str]] = []
        self._source = Source(
            {
                "WireError": WireError,
                "fail": _fail,
                "new": object.__new__,
                "repeat": repeat,
                "rest_of_uvarint": rest_of_uvarint,
                "long_string": long_string,
                "skip_tags": skip_tags,
                "bad_input": (struct.error, IndexError, UnicodeDecodeError),
            }
        )

    def build(self) -> Callable[..., Any]:
        source = self._source
        title = f"{self._cls.__name__} v{self._version}"
        with source.block("def decode(buf, p=0):"):
            if self._zero_copy:
                source.line("if type(buf) is not memoryview: buf = memoryview(buf)")
            else:
                source.line("buf = bytes(buf)")
            room = REQUEST_OBJECTS_MAX if self._from_client else RESPONSE_OBJECTS_MAX
            source.line(f"size = len(buf); room = {room}")
            with source.block("try:"):
                source.line(f"m = new({source.constant('C', self._cls)})")
                self._struct(self._cls, "m")
                self._flush()
                if self._flexible:
                    # Everything else checks its own bounds; tags that nobody knows are jumped over.
                    source.line(f"if p > size: fail('{title} ends early')")
                if not self._from_client:
                    # Kafka does not look behind a request, and librdkafka leaves bytes there (Metadata v13).
                    source.line(f"if p < size: fail('{title} has bytes left over')")
                source.line("return m")
            with source.block("except bad_input as error:"):
                source.line(f"raise WireError(f'{title} cannot be read: {{error}}') from error")
        decode: Callable[..., Any] = source.compiled("decode", f"decoder of {title}")
        return decode

    def _struct(self, cls: type, target: str) -> None:
        """Read the fields of an instance that is there already, still empty."""
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
        """Read the pending run of fixed-size values, and the string or list before it, with one unpack."""
        codes = "".join(code for code, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        before, self._before = self._before, None
        self._run.clear()
        if isinstance(before, _PendingText):
            self._unpack_text(before, codes, targets)
        elif before is not None:
            self._unpack_list(before, codes, targets)
        else:
            self._unpack(codes, targets)

    def _unpack(self, codes: str, targets: str) -> None:
        if codes == "B":
            self._source.line(f"{targets} = buf[p]; p += 1")
        elif codes:
            size = struct.calcsize(">" + codes)
            self._source.line(f"({targets},) = {self._source.unpacker(codes)}(buf, p); p += {size}")

    def _unpack_text(self, text: _PendingText, codes: str, targets: str) -> None:
        source, base = self._source, int(self._flexible)
        unpackers, after = source.constant("text", text_unpackers(codes, base)), struct.calcsize(">" + codes)
        source.line(f"(text, {targets}) = {unpackers}[{text.lead}](buf, p)")
        source.line(f"{text.target} = text.decode(); p += {text.lead} + {after - base}")

    def _unpack_list(self, pending: _PendingList, codes: str, targets: str) -> None:
        """Lists of one and of three, the usual numbers of replicas, are read at one go with what follows them."""
        source, (item, target, n), base = self._source, pending, int(self._flexible)
        for count in USUAL_COUNTS:
            elements = ", ".join(f"e{each}" for each in range(count))
            with source.block(f"{'if' if count == USUAL_COUNTS[0] else 'elif'} {n} == {base + count}:"):
                self._unpack(item.code * count + codes, f"{elements}, {targets}" if targets else elements)
                source.line(f"{target} = [{elements}]")
        with source.block("else:"):
            reader = list_reader(item.code, base)
            short, long = source.constant("short", reader.short), source.constant("long", reader.long)
            source.line(f"if {n} == {base}: {target} = []")
            source.line(f"elif {base} < {n} < {base + SHORT}: {target} = [*{short}[{n}](buf, p)]")
            source.line(f"else: {n}, p, {target} = {long}(buf, p, {n}, room)")
            source.line(f"p += {n} * {item.size}" + f" - {item.size}" * base)
            self._unpack(codes, targets)
        if self._from_client:
            self._spend(n)

    def _lead(self, wide_code: str) -> str:
        """Read a length with the run before it. In flexible versions it is the first byte of length + 1 as a varint."""
        name = self._source.fresh("n")
        self._run.append(("B" if self._flexible else wide_code, name))
        self._flush()
        return name

    def _sized(self, kind: str, target: str, nullable: bool) -> None:
        source = self._source
        n = self._lead("h" if kind == "string" else "i")
        if not nullable:
            self._sized_body(kind, target, n)
            return
        with source.block(f"if {n} == 0:" if self._flexible else f"if {n} == -1:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self._sized_body(kind, target, n)
            self._flush()

    def _sized_body(self, kind: str, target: str, n: str) -> None:
        source = self._source
        if kind == "string":
            if self._flexible:
                source.line(f"if not 0 < {n} < 128: {n}, p = long_string(buf, p, {n})")
            self._before = _PendingText(target, n)
            return
        if self._flexible:
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"if {n} == 0: fail('null where bytes are required')")
        else:
            source.line(f"if {n} < 0: fail(f'a length of {{{n}}}')")
        source.line(f"q = p + {n} - 1" if self._flexible else f"q = p + {n}")
        source.line("if q > size: fail(f'{q - p} bytes announced, {size - p} left')")
        source.line(f"{target} = buf[p:q]; p = q" if kind == "records" else f"{target} = bytes(buf[p:q]); p = q")

    def _array(self, item: Shape, target: str, nullable: bool) -> None:
        source = self._source
        n = self._lead("i")
        if not nullable:
            self._array_body(item, target, n)
            return
        with source.block(f"if {n} == {int(self._flexible) - 1}:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self._array_body(item, target, n)
            self._flush()

    def _array_body(self, item: Shape, target: str, n: str) -> None:
        if isinstance(item, Fixed):
            self._before = _PendingList(item, target, n)
            return
        source = self._source
        if self._flexible:
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"{n} -= 1")
        bytes_min = smallest(item, self._version, self._flexible)
        too_many = f"not 0 <= {n} * {bytes_min} <= size - p or {n} > room"
        source.line(f"if {too_many}: fail(f'a count of {{{n}}} with {{size - p}} bytes left')")
        source.line(f"room -= {n}")
        items, each = source.fresh("a"), source.fresh("o")
        if isinstance(item, type):
            name = source.constant("C", item)
            source.line(f"{target} = {items} = [new({name})] if {n} == 1 else [*map(new, repeat({name}, {n}))]")
            with source.block(f"for {each} in {items}:"):
                self._struct(item, each)
                self._flush()
            return
        source.line(f"{target} = {items} = []")
        with source.block(f"for _ in range({n}):"):
            self._value(item, each, nullable=False)
            self._flush()
            source.line(f"{items}.append({each})")

    def _tagged_value(self, field: Field, target: str) -> None:
        if isinstance(field.shape, type):
            # In a tag, the mark of a struct that is null is 0.
            self._nested(field.shape, target, field.nullable(self._version), null_mark=0)
        else:
            self._value(field.shape, target, field.nullable(self._version))

    def _nested(self, cls: type, target: str, nullable: bool, null_mark: int = -1) -> None:
        source = self._source
        if not nullable:
            name = source.fresh("o")
            source.line(f"{target} = {name} = new({source.constant('C', cls)})")
            self._struct(cls, name)
            return
        marker = source.fresh("n")
        self._run.append(("b", marker))
        self._flush()
        with source.block(f"if {marker} <= {null_mark}:"):
            source.line(f"{target} = None")
        with source.block("else:"):
            self._nested(cls, target, nullable=False)
            self._flush()

    def _tags(self, tagged: list[Field], target: str) -> None:
        source = self._source
        n = self._lead("B")
        if not tagged:
            with source.block(f"if {n}:"):
                source.line(f"p = skip_tags(buf, p, {n})")
                self._spend(n)
            return
        tag, length, end = source.fresh("t"), source.fresh("l"), source.fresh("e")
        with source.block(f"if {n}:"):
            source.line(f"if {n} > 127: {n}, p = rest_of_uvarint(buf, p, {n})")
            source.line(f"if {n} > {TAGS_MAX} or {n} > size - p: fail(f'{{{n}}} tagged fields in {{size - p}} bytes')")
            self._spend(n)
            with source.block(f"for _ in range({n}):"):
                for name in (tag, length):
                    source.line(f"{name} = buf[p]; p += 1")
                    source.line(f"if {name} > 127: {name}, p = rest_of_uvarint(buf, p, {name})")
                source.line(f"{end} = p + {length}")
                source.line(f"if {end} > size: fail(f'{{{length}}} bytes announced, {{size - p}} left')")
                for field in tagged:
                    with source.block(f"{'if' if field is tagged[0] else 'elif'} {tag} == {field.tag}:"):
                        self._tagged_value(field, f"{target}.{field.name}")
                        self._flush()
                        source.line(f"if p != {end}: fail('{field.name} does not fill its tagged field')")
                source.line(f"else: p = {end}")

    def _spend(self, count: str) -> None:
        self._source.line(f"room -= {count}")
        self._source.line("if room < 0: fail('too many elements in one request')")


def smallest(shape: Shape, version: int, flexible: bool) -> int:
    """The fewest bytes a value of this shape can take."""
    if isinstance(shape, Fixed):
        return shape.size
    if isinstance(shape, Sized):
        return 1 if flexible else 2 if shape.name == "string" else 4
    if isinstance(shape, Array):
        return 1 if flexible else 4
    fields = [each for each in declaration_of(shape).fields if each.tag is None and each.present(version)]
    markers = [each for each in fields if isinstance(each.shape, type) and each.nullable(version)]
    inner = (1 if each in markers else smallest(each.shape, version, flexible) for each in fields)
    return sum(inner) + flexible
