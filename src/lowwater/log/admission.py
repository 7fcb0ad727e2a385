"""What a producer's batch must be before it enters a log. Records stay encoded; only the header is looked at."""

from __future__ import annotations

from itertools import islice

from crc32c import crc32c

from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.log.config import LogConfig
from lowwater.wire.compression import ZSTD
from lowwater.wire.records import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    HAS_DELETE_HORIZON,
    HEADER_SIZE,
    INLINE_BYTES_MAX,
    INLINE_RECORDS_MAX,
    LOG_APPEND_TIME,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    PREFIX_SIZE,
    RECORD_SIZE_MIN,
    TRANSACTIONAL,
    BatchHeader,
    read_records,
    read_times,
    set_max_timestamp,
    unpack_header,
)

# More are not told: each takes more room in the answer than in the batch.
KEYLESS_TOLD_MAX = 100
_SPECIAL = CONTROL | HAS_DELETE_HORIZON | LOG_APPEND_TIME | TRANSACTIONAL


class RefusedRecordsError(ApiError):
    """A batch is refused because of some of its records; `indexes` are their places in the batch."""

    def __init__(self, detail: str, indexes: tuple[int, ...]) -> None:
        super().__init__(ErrorCode.INVALID_RECORD, detail)
        self.indexes = indexes


def admit(batch: memoryview, config: LogConfig, now_ms: int, *, zstd_allowed: bool) -> BatchHeader:
    """The header of an acceptable batch; ApiError with Kafka's code for any other."""
    size = len(batch)
    if size < HEADER_SIZE:
        raise _too_short(batch)
    header = BatchHeader._make(unpack_header(batch))
    if header.magic != 2:
        raise _wrong_format(header.magic)
    if header.batch_length + PREFIX_SIZE != size:
        raise _wrong_length(header, size)
    if size > config.max_message_bytes:
        raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, f"a batch of {size} bytes, {config.max_message_bytes} are allowed")
    if crc32c(batch[CRC_START:]) != header.crc:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its CRC")
    attributes = header.attributes
    if attributes & _SPECIAL:
        _check_special(header)
    if (attributes & CODEC_MASK) >= ZSTD:
        _check_codec(attributes & CODEC_MASK, zstd_allowed=zstd_allowed)
    _check_counts(header, size)
    if not config.log_append_time:
        if header.max_timestamp < header.base_timestamp:
            header = _with_largest_time(batch, header)
        _check_times(header, config, now_ms)
    if config.compact:
        _check_keys(batch, header)
    return header


def _too_short(batch: memoryview) -> ApiError:
    if not len(batch):
        return _invalid("a Produce must hold one record batch per partition")
    if len(batch) > MAGIC_POSITION and batch[MAGIC_POSITION] != 2:
        return _wrong_format(batch[MAGIC_POSITION])
    return _invalid(f"{len(batch)} bytes are too few for a record batch")


def _wrong_format(magic: int) -> ApiError:
    if 0 <= magic < 2:
        return _invalid(f"message format {magic} is no longer taken, only 2")
    return ApiError(ErrorCode.CORRUPT_MESSAGE, f"message format {magic} is unknown")


def _wrong_length(header: BatchHeader, size: int) -> ApiError:
    if header.size < HEADER_SIZE:
        return ApiError(ErrorCode.CORRUPT_MESSAGE, f"a batch cannot have {header.size} bytes")
    if header.size < size:
        return _invalid("a Produce must hold exactly one record batch per partition")
    return _invalid(f"a batch of {header.size} bytes in {size} bytes")


def _check_special(header: BatchHeader) -> None:
    attributes = header.attributes
    if attributes & LOG_APPEND_TIME:
        raise ApiError(ErrorCode.INVALID_TIMESTAMP, "a producer cannot set the append time")
    if attributes & (CONTROL | HAS_DELETE_HORIZON):
        raise _invalid("a producer cannot write control batches or delete horizons")
    if header.producer_id < 0:
        raise ApiError(ErrorCode.INVALID_TXN_STATE, "a transactional batch without a producer id")


def _check_codec(codec: int, *, zstd_allowed: bool) -> None:
    if codec > ZSTD:
        raise _invalid(f"compression codec {codec} is unknown")
    if not zstd_allowed:
        raise ApiError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce v7 or later")


def _check_counts(header: BatchHeader, size: int) -> None:
    count = header.record_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise _invalid(f"{count} records with a last offset delta of {header.last_offset_delta}")
    if header.base_offset != 0:
        raise _invalid(f"the base offset of a new batch is 0, not {header.base_offset}")
    if not header.attributes & CODEC_MASK and count * RECORD_SIZE_MIN > size - HEADER_SIZE:
        raise _invalid(f"{count} records do not fit into {size} bytes")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise _invalid(f"producer {header.producer_id} without a sequence number or an epoch")


def _with_largest_time(batch: memoryview, header: BatchHeader) -> BatchHeader:
    """Some producers leave the largest timestamp out of the header; look-ups by time and retention rely on it."""
    _check_decodable(header)
    try:
        set_max_timestamp(batch, max(timestamp for _, timestamp in read_times(batch, limit=INLINE_BYTES_MAX)))
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    return BatchHeader._make(unpack_header(batch))


def _check_times(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    """From the header alone: the first record's timestamp and the largest."""
    latest = header.max_timestamp
    if latest == NO_TIMESTAMP:
        return
    if latest - now_ms > config.timestamp_after_max_ms:
        raise _bad_time(f"timestamp {latest} is more than {config.timestamp_after_max_ms} ms ahead")
    if header.base_timestamp != NO_TIMESTAMP and now_ms - header.base_timestamp > config.timestamp_before_max_ms:
        raise _bad_time(f"timestamp {header.base_timestamp} is more than {config.timestamp_before_max_ms} ms ago")


def _check_keys(batch: memoryview, header: BatchHeader) -> None:
    """A compacted topic keeps the last value of each key, so each record needs one."""
    _check_decodable(header)
    records = enumerate(read_records(batch, limit=INLINE_BYTES_MAX))
    try:
        keyless = tuple(islice((index for index, record in records if record.key is None), KEYLESS_TOLD_MAX))
    except WireError as error:
        raise ApiError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    if keyless:
        raise RefusedRecordsError("a record of a compacted topic needs a key", keyless)


def _check_decodable(header: BatchHeader) -> None:
    if header.record_count > INLINE_RECORDS_MAX:
        raise _invalid(f"{header.record_count} records, {INLINE_RECORDS_MAX} can be looked into")


def _invalid(detail: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_RECORD, detail)


def _bad_time(detail: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_TIMESTAMP, detail)
