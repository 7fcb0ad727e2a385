"""Dates, times and base64 within JSON's texts."""

# mypy: disable-error-code="no-untyped-call, call-arg, no-any-return, return-value, assignment"

from __future__ import annotations

import numba

from lowwater.spark.decoding.json_scanning import (
    BACKSLASH,
    BAD_BASE64,
    BAD_TIME,
    COLON,
    MINUS,
    NINE,
    PLUS,
    POINT,
    SLASH,
    ZERO,
)
from lowwater.spark.decoding.kernels import GOOD
from lowwater.wire.kernels.compiling import byte_at, put_byte

SECOND_US = 1_000_000
DAY_S = 86_400
UPPER_T, LOWER_T, SPACE, UPPER_Z, LOWER_Z, EQUALS, UNDERLINE = (ord(sign) for sign in "Tt Zz=_")


@numba.njit(nogil=True)
def digits(at: int, end: int, count: int) -> int:
    """A number of exactly so many digits; -1 when there are not as many."""
    if end - at < count:
        return -1
    number = 0
    for place in range(at, at + count):
        digit = numba.int64(byte_at(place)) - ZERO
        if digit < 0 or digit > 9:
            return -1
        number = number * 10 + digit
    return number


@numba.njit(nogil=True, forceinline=True)
def sign_at(at: int, end: int, sign: int) -> bool:
    return at < end and byte_at(at) == sign


@numba.njit(nogil=True)
def days_in(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 + (month + (month > 7)) % 2


@numba.njit(nogil=True)
def read_date(at: int, end: int) -> tuple[int, int]:
    """Days since 1970 of YYYY-MM-DD, and what is wrong."""
    year, month, day = digits(at, end, 4), digits(at + 5, end, 2), digits(at + 8, end, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > days_in(year, month):
        return 0, BAD_TIME
    if byte_at(at + 4) != MINUS or byte_at(at + 7) != MINUS:
        return 0, BAD_TIME
    shifted = year - (month <= 2)  # years that begin in March have their leap day at the end
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468, GOOD


@numba.njit(nogil=True)
def read_clock(at: int, end: int) -> tuple[int, int]:
    """Microseconds of HH:MM, HH:MM:SS or HH:MM:SS.f, and the place behind; -1 when it is none."""
    hour, minute = digits(at, end, 2), digits(at + 3, end, 2)
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or byte_at(at + 2) != COLON:
        return -1, at
    at += 5
    second = fraction = 0
    if sign_at(at, end, COLON):
        second = digits(at + 1, end, 2)
        if second < 0 or second > 59:
            return -1, at
        at += 3
        if sign_at(at, end, POINT):
            at += 1
            first = at
            while at < end and ZERO <= byte_at(at) <= NINE:
                if at - first < 6:
                    fraction = fraction * 10 + numba.int64(byte_at(at)) - ZERO
                at += 1
            if at == first or at - first > 9:
                return -1, at
            for _ in range(at - first, 6):
                fraction *= 10
    return ((hour * 60 + minute) * 60 + second) * SECOND_US + fraction, at


@numba.njit(nogil=True)
def read_zone(at: int, end: int) -> tuple[int, bool]:
    """Seconds east of UTC of Z, +HH, +HHMM or +HH:MM, which reach to the end, and whether that is what stands there."""
    if end - at == 1 and (byte_at(at) == UPPER_Z or byte_at(at) == LOWER_Z):
        return 0, True
    if at == end or (byte_at(at) != PLUS and byte_at(at) != MINUS):
        return 0, False
    hours = digits(at + 1, end, 2)
    rest = at + 3 + sign_at(at + 3, end, COLON)
    minutes = 0 if end - at == 3 else digits(rest, end, 2)
    is_whole = end - at == 3 or end - rest == 2
    if hours < 0 or hours > 18 or minutes < 0 or minutes > 59 or not is_whole:
        return 0, False
    seconds = (hours * 60 + minutes) * 60
    return (-seconds if byte_at(at) == MINUS else seconds), True


@numba.njit(nogil=True)
def read_time(at: int, end: int, has_zone: bool) -> tuple[int, int]:
    """Microseconds since 1970 of an ISO text, in UTC unless it says otherwise, and what is wrong."""
    days, fault = read_date(at, end)
    if fault:
        return 0, fault
    at += 10
    if at == end:
        return days * DAY_S * SECOND_US, GOOD
    if not (byte_at(at) == UPPER_T or byte_at(at) == LOWER_T or byte_at(at) == SPACE):
        return 0, BAD_TIME
    clock, at = read_clock(at + 1, end)
    if clock < 0:
        return 0, BAD_TIME
    east = 0
    if at < end:
        east, is_zone = read_zone(at, end)
        if not is_zone or not has_zone:
            return 0, BAD_TIME
    return (days * DAY_S - east) * SECOND_US + clock, GOOD


@numba.njit(nogil=True)
def base64_digit(byte: int) -> int:
    if 0x41 <= byte <= 0x5A:
        return byte - 0x41
    if 0x61 <= byte <= 0x7A:
        return byte - 0x61 + 26
    if ZERO <= byte <= NINE:
        return byte - ZERO + 52
    if (byte == PLUS) | (byte == MINUS):
        return 62
    return 63 if (byte == SLASH) | (byte == UNDERLINE) else -1


@numba.njit(nogil=True)
def read_base64(at: int, end: int, target: int, fill: bool) -> tuple[int, int]:
    """Bytes of base64 in either alphabet, written to `target`: how many, and what is wrong. A slash may be escaped."""
    for _ in range(2):
        end -= end > at and byte_at(end - 1) == EQUALS
    size = bits = count = 0
    while at < end:
        byte = numba.int64(byte_at(at))
        at += 1
        if byte == BACKSLASH and sign_at(at, end, SLASH):
            continue
        digit = base64_digit(byte)
        if digit < 0:
            return 0, BAD_BASE64
        bits = (bits << 6 | digit) & 0xFFFFFF
        count += 1
        if count % 4 != 1:
            if fill:
                put_byte(target + size, numba.uint8(bits >> (6 - 2 * ((count - 1) % 4)) & 0xFF))
            size += 1
    return size, BAD_BASE64 if count % 4 == 1 else GOOD
