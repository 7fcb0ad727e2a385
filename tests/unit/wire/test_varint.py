import pytest

from lowwater.errors import WireError
from lowwater.wire.varint import read_uvarint, skip_tags, write_uvarint

EDGES = [0, 1, 127, 128, 16383, 16384, (1 << 21) - 1, 1 << 21, (1 << 28) - 1, 1 << 28, (1 << 32) - 1]


@pytest.mark.parametrize("value", EDGES)
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    data = write_uvarint(value)
    assert len(data) == max(1, -(-value.bit_length() // 7))
    assert read_uvarint(b"__" + data + b"__", 2) == (value, 2 + len(data))


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_a_value_that_does_not_fit_is_refused(value: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        write_uvarint(value)


def test_a_sixth_byte_is_refused() -> None:
    with pytest.raises(WireError, match="more than 5 bytes"):
        read_uvarint(b"\x80\x80\x80\x80\x80\x01", 0)


def test_unknown_tags_are_skipped() -> None:
    assert skip_tags(b"\x02\x00\x01a\x81\x01\x02bc!", 1, 2) == 9


def test_more_tags_than_bytes_are_refused() -> None:
    with pytest.raises(WireError, match="127 tagged fields"):
        skip_tags(b"\x7f\x00\x01a", 1, 0x7F)


def test_a_cut_in_the_tags_is_noticed_by_their_count() -> None:
    with pytest.raises(WireError, match="4 tagged fields in 3 bytes"):
        skip_tags(b"\x04\x00\x00\x00", 1, 4)
