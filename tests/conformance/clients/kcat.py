"""kcat, Debian's build: an older librdkafka behind a command line, one process per call."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Sequence

from tests.conformance.clients.base import (
    EARLIEST,
    LATEST,
    PLAINLY,
    REQUEST_BYTES_MAX,
    TIMEOUT_S,
    Can,
    ClientError,
    Driver,
    OffsetAt,
    Producing,
    Received,
    Record,
)

STARTS = {EARLIEST: "beginning", LATEST: "end"}
KEY_END, RECORD_END = "\x1f", "\x1e"
# Lengths first, so that any byte may stand in a key or a value.
RECORD_FORMAT = "%o %T %K %S %h\n%k%s\n"


class Kcat(Driver):
    """It reports no offsets, stamps by itself, and has no admin calls beyond listing the metadata."""

    name = "kcat"
    peer = "kcat"
    can = frozenset(
        {
            Can.HEADERS,
            Can.NULL_HEADERS,
            Can.HEADER_ORDER,
            Can.NULL_VALUES,
            Can.IDEMPOTENCE,
            Can.OFFSETS_FOR_TIMES,
            Can.LIST_TOPICS,
        }
    )

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        command = ["kcat", "-b", self.bootstrap, *arguments]
        try:
            done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"kcat {' '.join(arguments)}") from None
        if done.returncode != 0:
            raise ClientError(_code(done.stderr), done.stderr.decode(errors="replace"))
        return done.stdout

    def produce(
        self, topic: str, records: Sequence[Record], how: Producing = PLAINLY, *, partition: int = 0
    ) -> list[int]:
        settings = [
            f"enable.idempotence={'true' if how.idempotent else 'false'}",
            f"acks={how.acks}",
            f"message.max.bytes={REQUEST_BYTES_MAX}",
        ]
        base = ["-P", "-t", topic, "-p", str(partition), "-z", how.codec]
        for setting in settings:
            base += ["-X", setting]
        # One call sends one set of headers and one kind of record; runs of equal ones share a call.
        for (headers, keyed, is_null), run in itertools.groupby(records, _kind):
            arguments = [
                *base,
                "-D",
                RECORD_END,
                *(["-K", KEY_END] if keyed or is_null else []),
                *(["-Z"] if is_null else []),
            ]
            for name, value in headers:
                arguments += ["-H", name if value is None else f"{name}={value.decode()}"]
            self._run(*arguments, stdin=b"".join(_line(record, keyed or is_null) for record in run))
        return []

    def consume(self, topic: str, count: int, *, start: int = EARLIEST, partition: int = 0) -> list[Received]:
        where = ["-t", topic, "-p", str(partition), "-o", STARTS.get(start, str(start)), "-c", str(count)]
        settings = ["-X", "fetch.wait.max.ms=50", "-X", "topic.auto.offset.reset=error"]
        return _parse(self._run("-C", *where, *settings, "-f", RECORD_FORMAT), count)

    def offset_at(self, topic: str, when: int, *, partition: int = 0) -> OffsetAt:
        line = self._run("-Q", "-t", f"{topic}:{partition}:{when}").decode()
        return OffsetAt(int(line.rsplit(" ", 1)[1]))

    def list_topics(self) -> set[str]:
        lines = self._run("-L").decode().splitlines()
        return {line.split('"')[1] for line in lines if line.lstrip().startswith('topic "')}

    def close(self) -> None:
        pass


def _kind(record: Record) -> tuple[object, bool, bool]:
    return record.headers, record.key is not None, record.value is None


def _line(record: Record, with_key: bool) -> bytes:
    """A record as kcat reads it. With -Z an empty key or value is sent as null; a bare empty line is dropped."""
    key, value = record.key or b"", record.value or b""
    assert with_key or value, "kcat sends no empty value without a key"
    assert not any(mark.encode() in key + value for mark in (KEY_END, RECORD_END)), "the delimiters of this driver"
    return (key + KEY_END.encode() if with_key else b"") + value + RECORD_END.encode()


def _parse(output: bytes, count: int) -> list[Received]:
    received = []
    position = 0
    for _ in range(count):
        end = output.index(b"\n", position)
        offset, stamp, key_size, value_size, headers = output[position:end].decode().split(" ", 4)
        position = end + 1
        key, position = _field(output, position, int(key_size))
        value, position = _field(output, position, int(value_size))
        position += 1
        record = Record(value, key, _headers(headers), int(stamp))
        received.append(Received(int(offset), record))
    return received


def _field(output: bytes, position: int, size: int) -> tuple[bytes | None, int]:
    if size < 0:
        return None, position
    return output[position : position + size], position + size


def _headers(text: str) -> tuple[tuple[str, bytes | None], ...]:
    if not text:
        return ()
    pairs = (pair.split("=", 1) for pair in text.split(","))
    return tuple((name, None if value == "NULL" else value.encode()) for name, value in pairs)


def _code(stderr: bytes) -> int:
    """kcat prints librdkafka's words for an error; these are the ones that the suite meets."""
    words = {b"Message size too large": 10, b"Unknown topic or partition": 3, b"Offset out of range": 1}
    return next((code for text, code in words.items() if text in stderr), -1)
