"""Requests and record batches as bytes, built once and sent again and again.

Versions that librdkafka's mock, Apache Kafka 4 and Lowwater all serve; none of them flexible.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import crc32c

PRODUCE, FETCH, METADATA, API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS = 0, 1, 3, 18, 19, 20
CLIENT_ID = "bench"


def varint(value: int) -> bytes:
    """Zigzag, base 128."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def record_batch(values: Sequence[bytes]) -> bytes:
    """A RecordBatch v2 without keys, headers or compression, of now: older records would soon be retired."""
    timestamp_ms = time.time_ns() // 1_000_000
    records = bytearray()
    for delta, value in enumerate(values):
        body = b"\0\0" + varint(delta) + b"\1" + varint(len(value)) + value + b"\0"
        records += varint(len(body)) + body
    last = len(values) - 1
    checked = struct.pack(">hiqqqhii", 0, last, timestamp_ms, timestamp_ms, -1, -1, -1, len(values)) + records
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c.crc32c(checked)) + checked


def batch_of(record_bytes: int, batch_bytes: int) -> tuple[bytes, int]:
    """A batch of about `batch_bytes` whose values have `record_bytes` each; and how many there are."""
    count = max(1, batch_bytes // (record_bytes + 12))
    filler = bytes(33 + i % 90 for i in range(record_bytes + count))
    return record_batch([filler[i : i + record_bytes] for i in range(count)]), count


def request(api_key: int, version: int, body: bytes, *, correlation_id: int = 1) -> bytes:
    header = struct.pack(">hhi", api_key, version, correlation_id) + string(CLIENT_ID)
    return struct.pack(">i", len(header) + len(body)) + header + body


@dataclass(frozen=True, slots=True)
class ProduceFrame:
    """One batch for one partition (v7), and where its reply holds the error code."""

    data: bytes
    records: int
    error_at: int


def produce(topic: str, partition: int, batch: bytes, records: int, acks: int) -> ProduceFrame:
    of_partition = struct.pack(">ii", partition, len(batch)) + batch
    body = struct.pack(">hhi", -1, acks, 30_000) + array([string(topic) + array([of_partition])])
    # size, correlation id, topics, name, partitions, index
    return ProduceFrame(request(PRODUCE, 7, body), records, 4 + 4 + 4 + len(string(topic)) + 4 + 4)


def fetch(
    topic: str,
    positions: Mapping[int, int],
    bytes_max: int,
    *,
    wait_ms: int = 500,
    min_bytes: int = 1,
    isolation: int = 0,
) -> bytes:
    """Fetch v11 outside a session, up to `bytes_max` of each partition from its position."""
    partitions = [struct.pack(">iiqqi", index, -1, offset, -1, bytes_max) for index, offset in positions.items()]
    head = struct.pack(">iiiibii", -1, wait_ms, min_bytes, bytes_max * len(partitions), isolation, 0, -1)
    return request(FETCH, 11, head + array([string(topic) + array(partitions)]) + array([]) + string(""))


def fetch_error_at(topic: str) -> int:
    """Where the reply to a Fetch of one partition holds that partition's error code."""
    return 4 + 4 + 4 + 2 + 4 + 4 + len(string(topic)) + 4 + 4


def fetch_reply_size(topic: str, record_bytes: int) -> int:
    """How long the reply to a Fetch of one partition is that returns that many bytes of batches."""
    after_error = 8 + 8 + 8 + 4 + 4 + 4
    return fetch_error_at(topic) + 2 + after_error + record_bytes


def metadata(topics: Sequence[str] | None) -> bytes:
    """Metadata v4; None asks for all topics. Named ones are created where the broker does that."""
    named = array([string(topic) for topic in topics]) if topics is not None else struct.pack(">i", -1)
    return request(METADATA, 4, named + b"\1")


def api_versions() -> bytes:
    """ApiVersions v2: the newest that the mock serves."""
    return request(API_VERSIONS, 2, b"")


def create_topic(topic: str, partitions: int, configs: Mapping[str, str]) -> bytes:
    """CreateTopics v4."""
    settings = array([string(name) + string(value) for name, value in configs.items()])
    one = string(topic) + struct.pack(">ih", partitions, 1) + array([]) + settings
    return request(CREATE_TOPICS, 4, array([one]) + struct.pack(">ib", 60_000, 0))


def delete_topic(topic: str) -> bytes:
    """DeleteTopics v3."""
    return request(DELETE_TOPICS, 3, array([string(topic)]) + struct.pack(">i", 60_000))
