"""The four codecs of a record batch, as Kafka's clients write and read them.

Decompression is bounded: output grows with what really comes out, and stops at `limit` with a typed error.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import cramjam

from lowwater.errors import WireError
from lowwater.types import Buffer

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

OUTPUT_LIMIT = 256 * 1024 * 1024

LEVELS = {GZIP: range(10), LZ4: range(1, 18), ZSTD: range(1, 23)}
"""What may be asked of the codecs that can be asked."""

_GZIP_WINDOW = 31  # zlib's way to say: with gzip's header and trailer
_OUTPUT_GUESS_MIN = 64 * 1024
_PIECE_MIN, _PIECE_RATIO = 1024 * 1024, 8
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK = 32 * 1024
# Version 1, independent blocks of 64 KiB, no checksums; the third byte is the descriptor's own checksum. Java's reader
# refuses linked blocks, which is what the library's own frames have.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x8000_0000
_LZ4_END = b"\0\0\0\0"


class CompressionError(WireError):
    """Compressed bytes are damaged, or too large once decompressed."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """`data` in the framing that every Kafka client reads; how hard to try is a matter of `LEVELS`."""
    return _COMPRESS[codec](data, level)


def decompress(codec: int, data: Buffer, *, limit: int = OUTPUT_LIMIT) -> Buffer:
    """The original bytes, at most `limit` of them."""
    if not 0 <= codec < len(_DECOMPRESS):
        raise CompressionError(f"compression codec {codec} is unknown")
    return _DECOMPRESS[codec](data, limit)


def fills_room(codec: int) -> bool:
    """Whether `decompress_into` may do anything."""
    return codec in _DECOMPRESS_INTO


def decompress_into(codec: int, data: Buffer, room: memoryview) -> int | None:
    """Write the original bytes there, and say how many they are; None: they do not fit, or it is not done this way."""
    into = _DECOMPRESS_INTO.get(codec)
    if into is None:
        return None
    try:
        return into(data, room)
    except cramjam.DecompressionError as error:
        if _is_full(error):
            return None
        raise CompressionError(f"{CODEC_NAMES[codec]}: {error}") from error


def _stored(data: Buffer, _: int | None) -> bytes:
    return bytes(data)


def _as_is(data: Buffer, limit: int) -> Buffer:
    if len(data) > limit:
        raise _too_large("uncompressed", limit)
    return data


def _gzip(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.gzip.compress(data, level))


def _gunzip(data: Buffer, limit: int) -> Buffer:
    """One or several gzip members, streamed: in pieces, so that what is too large never is there twice."""
    output = bytearray()
    rest: Buffer = data
    while len(rest):
        stream = zlib.decompressobj(_GZIP_WINDOW)
        while not stream.eof:
            before, room = len(output), limit - len(output) + 1
            try:
                output += stream.decompress(rest, min(room, max(_PIECE_MIN, _PIECE_RATIO * len(rest))))
            except zlib.error as error:
                raise CompressionError(f"gzip: {error}") from error
            if len(output) > limit:
                raise _too_large("gzip", limit)
            rest = stream.unconsumed_tail
            if not rest and not stream.eof and len(output) == before:
                raise CompressionError("gzip: the stream ends early")
        rest = stream.unused_data
    return output


def _snappy(data: Buffer, _: int | None) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _unsnappy(data: Buffer, limit: int) -> Buffer:
    """Xerial's blocks (Java, Python) or one raw block (librdkafka)."""
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _unsnappy_block(view, limit)
    output = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        size = int.from_bytes(view[position : position + 4], "big")
        block = view[position + 4 : position + 4 + size]
        if len(block) < size or not size:
            raise CompressionError("snappy: a block ends early")
        output += _unsnappy_block(block, limit - len(output))
        position += 4 + size
    return output


def _unsnappy_block(block: memoryview, limit: int) -> bytearray:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > limit or size > len(block) * 64:  # a copy element of 2 or 3 bytes yields at most 64
            raise _too_large("snappy", limit)
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output)
    except cramjam.DecompressionError as error:
        raise CompressionError(f"snappy: {error}") from error
    if written != size:
        raise CompressionError("snappy: a block is shorter than it says")
    return output


def _lz4(data: Buffer, level: int | None) -> bytes:
    view = memoryview(data)
    how: dict[str, Any] = {} if level is None else {"mode": "high_compression", "compression": level}
    parts = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK):
        plain = view[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False, **how))
        if len(block) < len(plain):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(plain) | _LZ4_STORED).to_bytes(4, "little"), bytes(plain))
    parts.append(_LZ4_END)
    return b"".join(parts)


def _unlz4(data: Buffer, limit: int) -> Buffer:
    return _grow(cramjam.lz4.decompress_into, "lz4", data, limit)


def _zstd(data: Buffer, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level))


def _unzstd(data: Buffer, limit: int) -> Buffer:
    return _grow(cramjam.zstd.decompress_into, "zstd", data, limit)


def _grow(decompress_into: Callable[..., Any], name: str, data: Buffer, limit: int) -> Buffer:
    """Try ever larger outputs: what the stream claims about its own size is not believed."""
    size = min(max(_OUTPUT_GUESS_MIN, 4 * len(data)), limit)
    while True:
        output = bytearray(size)
        try:
            written = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if not _is_full(error):
                raise CompressionError(f"{name}: {error}") from error
            if size >= limit:
                raise _too_large(name, limit) from error
            size = min(size * 4, limit)
            continue
        del output[written:]
        return output


def _is_full(error: Exception) -> bool:
    return "failed to write whole buffer" in str(error)


def _too_large(name: str, limit: int) -> CompressionError:
    return CompressionError(f"{name}: more than {limit} bytes come out")


_COMPRESS: tuple[Callable[[Buffer, int | None], bytes], ...] = (_stored, _gzip, _snappy, _lz4, _zstd)
_DECOMPRESS: tuple[Callable[[Buffer, int], Buffer], ...] = (_as_is, _gunzip, _unsnappy, _unlz4, _unzstd)
_DECOMPRESS_INTO: dict[int, Callable[[Buffer, memoryview], int]] = {
    LZ4: cramjam.lz4.decompress_into,
    ZSTD: cramjam.zstd.decompress_into,
}
