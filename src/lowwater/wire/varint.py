"""Unsigned varints, and what the generated codecs call when a value is not the common small one."""

from lowwater.errors import WireError
from lowwater.types import Buffer

STRING_BYTES_MAX = 0x7FFF
_SHORT = [bytes([value]) for value in range(128)]


def write_uvarint(value: int) -> bytes:
    """`value` as an unsigned varint; it has to be within [0, 2**32)."""
    if 0 <= value < 128:
        return _SHORT[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} does not fit an unsigned varint")
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """The varint at `position`, and where the next field starts. IndexError past the end of `data`."""
    lead = data[position]
    if lead < 128:
        return lead, position + 1
    return rest_of_uvarint(data, position + 1, lead)


def rest_of_uvarint(data: Buffer, position: int, lead: int) -> tuple[int, int]:
    """Like read_uvarint, when the first byte is read already and `position` is behind it."""
    value = lead & 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise WireError("a varint has more than 5 bytes")


def string_length(length_plus_one: int) -> bytes:
    """The varint in front of a compact string; ValueError when the string is too long for the protocol."""
    if length_plus_one > STRING_BYTES_MAX + 1:
        raise ValueError(f"a string of {length_plus_one - 1} bytes is too long, {STRING_BYTES_MAX} is the most")
    return write_uvarint(length_plus_one)


def long_string(data: Buffer, position: int, lead: int) -> tuple[int, int]:
    """The length + 1 of a compact string whose first byte is not an ordinary short length."""
    if lead == 0:
        raise WireError("null where a string is required")
    value, position = rest_of_uvarint(data, position, lead)
    if not 0 < value <= STRING_BYTES_MAX + 1:
        raise WireError(f"a compact string claims {value - 1} bytes")
    return value, position


def skip_tags(data: Buffer, position: int, lead: int) -> int:
    """Skip tagged fields nobody knows; `lead` is the first byte of their count. Return where they end."""
    count = lead
    if lead > 127:
        count, position = rest_of_uvarint(data, position, lead)
    if count > len(data) - position:
        raise WireError(f"{count} tagged fields in {len(data) - position} bytes")
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
    return position
