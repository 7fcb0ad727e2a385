"""Unsigned varints, and tagged fields that nobody knows."""

from lowwater.errors import WireError
from lowwater.types import Buffer

# In one place of a message; newer peers send a few that we do not know.
TAGS_MAX = 1000
SHORT_UVARINT = [bytes([value]) for value in range(128)]


def write_uvarint(value: int) -> bytes:
    """`value` as an unsigned varint; it has to be within [0, 2**32)."""
    if 0 <= value < 128:
        return SHORT_UVARINT[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} does not fit an unsigned varint")
    if value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if value < 1 << 21:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14 & 127 | 128)) + write_uvarint(value >> 21)


def read_uvarint(data: Buffer, position: int) -> tuple[int, int]:
    """The varint at `position`, and where the next field starts. IndexError past the end of `data`."""
    lead = data[position]
    if lead < 128:
        return lead, position + 1
    return rest_of_uvarint(data, position + 1, lead)


def rest_of_uvarint(data: Buffer, position: int, lead: int) -> tuple[int, int]:
    """Like read_uvarint, when the first byte is read already, is above 127, and `position` is behind it."""
    byte = data[position]
    if byte < 128:
        return lead & 127 | byte << 7, position + 1
    value = lead & 127 | (byte & 127) << 7
    byte = data[position + 1]
    if byte < 128:
        return value | byte << 14, position + 2
    value |= (byte & 127) << 14
    byte = data[position + 2]
    if byte < 128:
        return value | byte << 21, position + 3
    value |= (byte & 127) << 21
    byte = data[position + 3]
    if byte < 128:
        return value | byte << 28, position + 4
    raise WireError("a varint has more than 5 bytes")


def skip_tags(data: Buffer, position: int, lead: int) -> int:
    """Skip tagged fields nobody knows; `lead` is the first byte of their count. Return where they end."""
    count = lead
    if lead > 127:
        count, position = rest_of_uvarint(data, position, lead)
    if count > TAGS_MAX or count > len(data) - position:
        raise WireError(f"{count} tagged fields in {len(data) - position} bytes")
    for _ in range(count):
        _, position = read_uvarint(data, position)
        size, position = read_uvarint(data, position)
        position += size
    return position
