"""Plain records, piled up by topic until they leave together, as columns."""

from __future__ import annotations

import reprlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import ModuleType
from typing import Any, TypeAlias

from lowwater.client.arguments import is_whole, whole_number
from lowwater.client.errors import BadRowsError
from lowwater.client.producing.reports import Report
from lowwater.wire.records import TIMESTAMP_MAX

Field: TypeAlias = bytes | str | None
Headers: TypeAlias = Mapping[str, Field] | Iterable[tuple[str, Field]]
Pairs: TypeAlias = list[tuple[str, bytes | None]]

# What a record costs beyond its bytes, roughly.
RECORD_BYTES = 50
NO_TIME_MS = -1


class Pile:
    """Records of one topic, by column."""

    __slots__ = ("_headers", "_keys", "_partitions", "_times", "_values", "report", "size", "topic")

    def __init__(self, topic: str, report: Report) -> None:
        self.topic = topic
        self.report = report
        self.size = 0
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._times: list[int] = []
        self._headers: dict[int, Any] = {}
        self._partitions: dict[int, int] = {}

    def add(
        self, value: bytes | None, key: bytes | None, headers: Pairs | None, partition: int | None, time_ms: int
    ) -> int:
        """How many bytes it takes, roughly."""
        if headers:
            self._headers[len(self._keys)] = headers
        if partition is not None:
            self._partitions[len(self._keys)] = partition
        self._keys.append(key)
        self._values.append(value)
        self._times.append(time_ms)
        size = RECORD_BYTES + (len(value) if value else 0) + (len(key) if key else 0)
        self.size += size
        return size

    def __len__(self) -> int:
        return len(self._keys)

    def record_batch(self, tables: ModuleType) -> Any:
        rows = range(len(self._keys))
        headers = [self._headers.get(row) for row in rows] if self._headers else None
        partitions = [self._partitions.get(row) for row in rows] if self._partitions else None
        return tables.record_batch(self._keys, self._values, headers, partitions, self._times)


class Piles:
    """Filled by any thread, emptied by the driver's: `post` calls back there, whoever calls it."""

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        begin_linger: Callable[[Callable[[], None]], None],
        take: Callable[[Pile], None],
        *,
        bytes_max: int,
        new_report: Callable[[], Report],
    ) -> None:
        self._post = post
        self._begin_linger = begin_linger
        self._take = take
        self._bytes_max = bytes_max
        self._new_report = new_report
        self._lock = threading.Lock()
        self.open: dict[str, Pile] = {}
        """By topic, those that more records join."""
        self._full: deque[Pile] = deque()
        self.size = 0
        """Bytes that are not taken yet, roughly."""

    def add(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Pairs | None,
        partition: int | None,
        time_ms: int,
    ) -> Report:
        with self._lock:
            pile = self.open.get(topic)
            is_first = pile is None
            if pile is None:
                pile = self.open[topic] = Pile(topic, self._new_report())
            self.size += pile.add(value, key, headers, partition, time_ms)
            is_full = pile.size >= self._bytes_max
            if is_full:
                self._full.append(self.open.pop(topic))
        if is_full:
            self._post(self._take_full)
        elif is_first:
            report = pile.report
            self._post(lambda: self._begin_linger(lambda: self._close(topic, report)))
        return pile.report

    def _close(self, topic: str, report: Report) -> None:
        """Its time is over, unless it was full before."""
        with self._lock:
            pile = self.open.get(topic)
            if pile is not None and pile.report is report:
                self._full.append(self.open.pop(topic))
        self._take_full()

    def close_all(self) -> None:
        """Everything leaves now. In the driver's thread."""
        with self._lock:
            self._full.extend(self.open.values())
            self.open.clear()
        self._take_full()

    def _take_full(self) -> None:
        while self._full:
            pile = self._full.popleft()
            with self._lock:
                self.size -= pile.size
            self._take(pile)


def field_bytes(field: Field) -> bytes | None:
    """A key or value as it is written."""
    if field is None or isinstance(field, bytes):
        return field
    if isinstance(field, str):
        return _encoded(field)
    if isinstance(field, bytearray | memoryview):
        return bytes(field)
    raise BadRowsError(f"a key or value is bytes, text or None, not {type(field).__name__}")


def header_pairs(headers: Headers) -> Pairs:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise _no_headers(headers)
    found = []
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise _no_headers(pair)
        name, value = pair
        if not isinstance(name, str):
            raise BadRowsError(f"the name of a header is text, not {type(name).__name__}")
        _encoded(name)
        found.append((name, field_bytes(value)))
    return found


def _no_headers(given: object) -> BadRowsError:
    return BadRowsError(f"headers are a mapping, or pairs of a name and a value, not {reprlib.repr(given)}")


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRowsError(f"{text!r} is no text that can be written as UTF-8") from error


def partition_number(partition: int) -> int:
    """Whether the topic has it is known later."""
    if not is_whole(partition) or not -1 <= partition < 2**31:
        raise BadRowsError(f"{partition!r} is no number of a partition")
    return int(partition)


def milliseconds(timestamp: int | datetime) -> int:
    """Of a time without a zone it is not known when it was. -1 is none."""
    if isinstance(timestamp, datetime):
        if timestamp.tzinfo is None:
            raise BadRowsError(f"timestamp {timestamp} has no time zone")
        time_ms = round(timestamp.timestamp() * 1000)
    else:
        time_ms = whole_number("timestamp", timestamp, "a datetime or whole milliseconds")
    if not NO_TIME_MS <= time_ms <= TIMESTAMP_MAX:
        raise BadRowsError(f"timestamp {timestamp} is no time in milliseconds since 1970")
    return time_ms
