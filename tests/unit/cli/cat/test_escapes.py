"""What backslashes mean in delimiters and formats."""

from __future__ import annotations

import pytest

from lowwater.cli.cat.escapes import EscapeError, delimiter, format_text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (rb"", b""),
        (rb"\n", b"\n"),
        (rb"\t\r\n", b"\t\r\n"),
        (rb"\x54!\x45", b"T!E"),
        (rb"\x00", b"\0"),
        (rb"\xffgo", b"\xffgo"),
        (rb"\x9", b"\t"),
        (rb"\q\\", rb"\q\\"),
    ],
)
def test_delimiters(text: bytes, meaning: bytes) -> None:
    assert delimiter(text) == meaning


def test_a_delimiter_that_announces_a_number_needs_one() -> None:
    with pytest.raises(EscapeError, match="xzz expects hex number"):
        delimiter(rb"a\xzz")


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (rb"a\tb\n", b"a\tb\n"),
        (rb"\x41\xA1\x4142", b"A\xa1A42"),
        (rb"\0\10\101\012\0x41", b"\0\x0ae\x0aA"),
        (rb"\q\\\%", b"q\\%"),
        (rb"\xzz", b"zz"),
        (b"end\\", b"end\\"),
    ],
)
def test_formats(text: bytes, meaning: bytes) -> None:
    assert format_text(text) == meaning
