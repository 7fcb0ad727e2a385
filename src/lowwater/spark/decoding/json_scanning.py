"""JSON's texts and numbers: where they end, whether they are well-formed, and what they say."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return, return-value, assignment"

from __future__ import annotations

from typing import Any

import numba

from lowwater.spark.decoding import kernels
from lowwater.spark.decoding.kernels import BAD_TEXT, CUT, GOOD, TOO_BIG, is_utf8
from lowwater.wire.kernels.compiling import byte_at, long_at, put_byte

BAD_SYNTAX, NOT_AN_OBJECT, WRONG_KIND, TWICE, TOO_DEEP, BAD_ESCAPE, NOT_WHOLE, TOO_FINE, BAD_TIME, BAD_BASE64 = range(
    20, 30
)
FAULTS = {
    **kernels.FAULTS,
    CUT: "the JSON ends too early",
    BAD_SYNTAX: "the JSON is not well-formed",
    NOT_AN_OBJECT: "the value is not a JSON object",
    WRONG_KIND: "the JSON value is of another kind",
    TWICE: "the field is there twice",
    TOO_DEEP: "the JSON is nested too deep",
    BAD_ESCAPE: "a text has an impossible escape or a control character",
    NOT_WHOLE: "the number is not a whole one",
    TOO_FINE: "the number has more decimals than its type",
    BAD_TIME: "the text is not a date or time of ISO 8601",
    BAD_BASE64: "the text is not base64",
}
SPACES = 1 << 32 | 1 << 13 | 1 << 10 | 1 << 9  # a bit for each of the four
QUOTE, BACKSLASH, MINUS, PLUS, POINT, COLON, SLASH = (ord(sign) for sign in '"\\-+.:/')
ZERO, NINE, UPPER_E, LOWER_E, LOWER_U = (ord(sign) for sign in "09Eeu")


@numba.njit(nogil=True, forceinline=True)
def skip_space(at: int, end: int) -> int:
    while at < end and byte_at(at) <= 32 and SPACES >> numba.int64(byte_at(at)) & 1:
        at += 1
    return at


@numba.njit(nogil=True, forceinline=True)
def is_digit(at: int, end: int) -> bool:
    return at < end and ZERO <= byte_at(at) <= NINE


@numba.njit(nogil=True, forceinline=True)
def is_plain(eight: int) -> bool:
    """Whether none of eight bytes is a quote, a backslash, a control character or beyond ASCII."""
    word, ones = numba.uint64(eight), numba.uint64(0x0101010101010101)
    quotes = word ^ numba.uint64(0x2222222222222222)
    slashes = word ^ numba.uint64(0x5C5C5C5C5C5C5C5C)
    found = word | ((quotes - ones) & ~quotes) | ((slashes - ones) & ~slashes)
    found |= (word - numba.uint64(0x2020202020202020)) & ~word
    return found & numba.uint64(0x8080808080808080) == 0


@numba.njit(nogil=True)
def scan_text(at: int, end: int) -> tuple[int, bool, int]:
    """Behind an opening quote: where the text ends, whether it has escapes, and what is wrong."""
    start, has_escape, is_ascii = at, False, True
    while end - at >= 8 and is_plain(long_at(at)):
        at += 8
    while at < end:
        byte = byte_at(at)
        if byte == QUOTE:
            return at, has_escape, GOOD if is_ascii or is_utf8(start, at - start) else BAD_TEXT
        if byte < 0x20:
            return at, has_escape, BAD_ESCAPE
        if byte == BACKSLASH:
            has_escape = True
            at += 1
        is_ascii &= byte < 0x80
        at += 1
    return at, has_escape, CUT


@numba.njit(nogil=True)
def hex_digits(at: int, end: int) -> int:
    """The number of four hexadecimal digits, -1 when they are not such."""
    if end - at < 4:
        return -1
    number = 0
    for place in range(4):
        byte = numba.int64(byte_at(at + place))
        letter = byte | 0x20
        if ZERO <= byte <= NINE:
            number = number * 16 + byte - ZERO
        elif 0x61 <= letter <= 0x66:
            number = number * 16 + letter - 0x61 + 10
        else:
            return -1
    return number


@numba.njit(nogil=True)
def put_character(code: int, target: int, fill: bool) -> int:
    """A character in UTF-8 at `target`: its bytes."""
    if code < 0x80:
        if fill:
            put_byte(target, numba.uint8(code))
        return 1
    size = 2 + (code >= 0x800) + (code >= 0x10000)
    if fill:
        lead = 0xC0 if size == 2 else (0xE0 if size == 3 else 0xF0)
        put_byte(target, numba.uint8(lead | code >> (6 * (size - 1))))
        for place in range(1, size):
            put_byte(target + place, numba.uint8(0x80 | code >> (6 * (size - 1 - place)) & 0x3F))
    return size


@numba.njit(nogil=True)
def escaped(at: int, end: int) -> tuple[int, int]:
    """The character of an escape behind its backslash, -1 when there is none; the place behind it."""
    byte = numba.int64(byte_at(at)) if at < end else 0
    if (byte == QUOTE) | (byte == BACKSLASH) | (byte == SLASH):
        return byte, at + 1
    if byte == 0x6E:
        return 10, at + 1
    if byte == 0x74:
        return 9, at + 1
    if byte == 0x72:
        return 13, at + 1
    if byte == 0x62:
        return 8, at + 1
    if byte == 0x66:
        return 12, at + 1
    if byte != LOWER_U:
        return -1, at
    high = hex_digits(at + 1, end)
    if high < 0xD800 or high > 0xDFFF:
        return high, at + 5
    if high > 0xDBFF or end - at < 11 or byte_at(at + 5) != BACKSLASH or byte_at(at + 6) != LOWER_U:
        return -1, at
    low = hex_digits(at + 7, end)
    if low < 0xDC00 or low > 0xDFFF:
        return -1, at
    return 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00, at + 11


@numba.njit(nogil=True)
def unescape(at: int, end: int, target: int, fill: bool) -> int:
    """The bytes of a text with escapes, written to `target`: how many, -1 when an escape is wrong."""
    size = 0
    while at < end:
        code = numba.int64(byte_at(at))
        at += 1
        if code == BACKSLASH:
            code, at = escaped(at, end)
            if code < 0:
                return -1
            size += put_character(code, target + size, fill)
            continue
        if fill:
            put_byte(target + size, numba.uint8(code))
        size += 1
    return size


@numba.njit(nogil=True)
def scan_number(at: int, end: int) -> tuple[int, bool, int]:
    """Where a number ends, whether it is written as a whole one, and what is wrong."""
    is_whole = True
    if at < end and byte_at(at) == MINUS:
        at += 1
    if not is_digit(at, end):
        return at, False, BAD_SYNTAX
    if byte_at(at) == ZERO:
        at += 1
    else:
        while is_digit(at, end):
            at += 1
    if at < end and byte_at(at) == POINT:
        at += 1
        is_whole = False
        if not is_digit(at, end):
            return at, False, BAD_SYNTAX
        while is_digit(at, end):
            at += 1
    if at < end and (byte_at(at) == LOWER_E or byte_at(at) == UPPER_E):
        at += 1
        is_whole = False
        if at < end and (byte_at(at) == PLUS or byte_at(at) == MINUS):
            at += 1
        if not is_digit(at, end):
            return at, False, BAD_SYNTAX
        while is_digit(at, end):
            at += 1
    return at, is_whole, GOOD


@numba.njit(nogil=True)
def whole_number(at: int, end: int, bits: int) -> tuple[int, int]:
    """A whole number that was scanned, if it fits a signed number of so many bits; what is wrong."""
    is_negative = byte_at(at) == MINUS
    at += is_negative
    if end - at > 19:
        return 0, TOO_BIG
    number = numba.uint64(0)
    for place in range(at, end):
        number = number * numba.uint64(10) + numba.uint64(byte_at(place) - ZERO)
    limit = numba.uint64(1) << numba.uint64(bits - 1)
    if number > limit or (number == limit and not is_negative):
        return 0, TOO_BIG
    return (-numba.int64(number) if is_negative else numba.int64(number)), GOOD


@numba.njit(nogil=True)
def times_ten(high: Any, low: Any, digit: Any) -> tuple[Any, Any]:
    """A number in two halves, times ten and a digit more."""
    ten, half, mask = numba.uint64(10), numba.uint64(32), numba.uint64(0xFFFFFFFF)
    lower = (low & mask) * ten + digit
    upper = (low >> half) * ten + (lower >> half)
    return high * ten + (upper >> half), (upper << half) | (lower & mask)


@numba.njit(nogil=True)
def exponent_of(at: int, end: int) -> tuple[int, int]:
    """Where the exponent of a scanned number begins (its end when there is none), and how much it is, within bounds."""
    e = at
    while e < end and byte_at(e) != LOWER_E and byte_at(e) != UPPER_E:
        e += 1
    exponent, place = 0, e + 1
    is_negative = place < end and byte_at(place) == MINUS
    while place < end:
        if byte_at(place) != MINUS and byte_at(place) != PLUS:
            exponent = min(exponent * 10 + numba.int64(byte_at(place)) - ZERO, 1 << 40)
        place += 1
    return e, -exponent if is_negative else exponent


@numba.njit(nogil=True)
def decimal_number(at: int, end: int, scale: int, top: Any, bottom: Any) -> tuple[int, int, int]:
    """A scanned number as a decimal of this scale, below a limit in two halves: low and high half, what is wrong."""
    is_negative = byte_at(at) == MINUS
    at += is_negative
    e, exponent = exponent_of(at, end)
    point = at
    while point < e and byte_at(point) != POINT:
        point += 1
    behind = max(e - point - 1, 0)
    digits = e - at - (point < e)
    kept = digits - behind + exponent + scale  # digits that the decimal has room for, from the first one
    high = low = numba.uint64(0)
    place = at
    for count in range(digits):
        place += place == point
        digit = numba.uint64(byte_at(place) - ZERO)
        place += 1
        if count >= kept:
            if digit:
                return 0, 0, TOO_FINE
            continue
        high, low = times_ten(high, low, digit)
        if high > top or (high == top and low >= bottom):
            return 0, 0, TOO_BIG
    while kept > digits and (high or low):
        high, low = times_ten(high, low, numba.uint64(0))
        if high > top or (high == top and low >= bottom):
            return 0, 0, TOO_BIG
        kept -= 1
    if is_negative:
        low = ~low + numba.uint64(1)
        high = ~high + numba.uint64(low == 0)
    return numba.int64(low), numba.int64(high), GOOD
