"""Records as -f, -K, -D, -O, -Z and -s print them."""

from __future__ import annotations

import pytest

from lowwater.cli.cat.layout import Field, LayoutError, Printer, parse_layout, plain_layout
from lowwater.cli.cat.unpacking import UnpackError, packing_problem, unpacker
from lowwater.client.rows import Row

ROW = Row("cars", 3, 17, 1234, 0, b"key", b"value", (("a", b"1"), ("a", None), ("b", b"")))
NOTHING = Row("cars", 0, 0, -1, 0, None, None)
EMPTY = Row("cars", 0, 0, -1, 0, b"", b"")


def printed(layout: bytes, row: Row = ROW, null: bytes = b"") -> bytes:
    return Printer(parse_layout(layout, null)).text(row)


def test_every_letter() -> None:
    assert printed(rb"%t %p %o %T %k %K %s %S %h %%\n") == b"cars 3 17 1234 key 3 value 5 a=1,a=NULL,b= %\n"
    assert printed(b"%R%s") == b"\0\0\0\x05value"


def test_null_is_not_empty() -> None:
    assert printed(b"%k|%K|%s|%S|%R", NOTHING) == b"|-1||-1|\xff\xff\xff\xff"
    assert printed(b"%k|%K|%s|%S", EMPTY) == b"|0||0"
    assert printed(b"%k|%s", NOTHING, b"NULL") == b"NULL|NULL"
    assert printed(b"%k|%s", EMPTY, b"NULL") == b"|"


def test_without_a_format() -> None:
    def text(key_delimiter: bytes | None, *, offsets: bool = False) -> bytes:
        return Printer(plain_layout(key_delimiter, b"\n", offsets=offsets)).text(ROW)

    assert text(None) == b"value\n"
    assert text(b":") == b"key:value\n"
    assert text(b":", offsets=True) == b"17:key:value\n"
    assert text(None, offsets=True) == b"17\tvalue\n"


@pytest.mark.parametrize(("text", "problem"), [(b"%y", "Unsupported formatter: %y"), (b"a%", "Empty formatter")])
def test_a_format_that_cannot_be_read(text: bytes, problem: str) -> None:
    with pytest.raises(LayoutError, match=problem):
        parse_layout(text)


def test_what_stands_behind_json_is_the_first_text_of_the_format() -> None:
    assert parse_layout(rb"x%s\n").first_text == b"x"
    assert parse_layout(b"%s").first_text == b""
    assert parse_layout(b"").first_text == b""


NUMBERS = bytes.fromhex("ff ff fffe fffe fffffffd fffffffd fffffffffffffffc fffffffffffffffc") + b"cend"


def test_unpacking() -> None:
    text = b"-1 255 -2 65534 -3 4294967293 -4 18446744073709551612 c end"
    assert unpacker("value", "b B h H i I q Q c s$")(NUMBERS) == text
    assert unpacker("value", "<h>h<I")(b"\x01\x00\x00\x01\x01\x00\x00\x00") == b"111"
    assert unpacker("value", "b")(b"\x01rest") == b"1"


def test_unpacking_says_what_is_missing_or_too_much() -> None:
    with pytest.raises(UnpackError, match="key truncated, expected 4 bytes to unpack i but only 2 bytes remaining"):
        unpacker("key", "i")(b"ab")
    with pytest.raises(UnpackError, match="key truncated, expected 1 bytes to unpack c but only 0"):
        unpacker("key", "cc")(b"a")
    with pytest.raises(UnpackError, match="expected value end-of-input, but 1 bytes remaining"):
        unpacker("value", "h$")(b"abc")


def test_letters_are_checked() -> None:
    assert packing_problem("key", " <>bBhHiIqQcs$") is None
    assert packing_problem("key", "") == "key pack-format must not be empty"
    assert "'y'" in str(packing_problem("value", "iy"))


def test_only_what_is_there_is_unpacked() -> None:
    printer = Printer(parse_layout(b"%k|%s", b"NULL"), {Field.KEY: unpacker("key", "h")})
    assert printer.text(Row("cars", 0, 0, 0, 0, b"\0\x07", b"value")) == b"7|value"
    assert printer.text(EMPTY) == b"|"
    assert printer.text(NOTHING) == b"NULL|NULL"
