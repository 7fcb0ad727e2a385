"""-P: records from stdin, from the lines of a file, or each file as one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lowwater.cli.cat.asked import Sending
from lowwater.cli.cat.input import Line, lines_of
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.cli.connecting import Connection
from lowwater.client.loading import WRITING, load
from lowwater.client.producer import Producer, Summary


def produce(
    connection: Connection,
    defaults: Mapping[str, str],
    topic: str,
    files: Sequence[str],
    sending: Sending,
    talk: Talk,
) -> bool:
    """Whether everything was written."""
    if sending.by_line and len(files) > 1:
        raise CatError("Only one file allowed for line mode (-l)")
    file = _opened(files[0]) if sending.by_line and files else None
    with connection.open(defaults) as connected:
        size_max = connected.config.int("max.request.size")
    settings = connection.client_settings(defaults)
    with Producer(config=settings) as producer:
        feed = Feed(producer, topic, sending, talk)

        def take() -> bool:
            if files and not sending.by_line:
                return feed.files(files)
            return feed.lines(sys.stdin.fileno() if file is None else file, size_max)

        if connected.config.maybe_str("transactional.id") is not None:
            return _in_transaction(producer, take, talk)
        try:
            is_whole = take()
        except KeyboardInterrupt:
            is_whole = True  # what was read goes out
        return feed.flush() and is_whole


def _in_transaction(producer: Producer, take: Callable[[], bool], talk: Talk) -> bool:
    """All of the input or nothing: with Ctrl-C, and whatever else goes wrong, nothing."""
    talk.say("Using transactional producer")
    producer.begin_transaction()
    try:
        is_whole = take()
        talk.say("Committing transaction")
        producer.commit_transaction()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            talk.say("Aborting transaction due to termination signal", level=0)
        producer.abort_transaction()
        raise
    talk.say("Transaction successfully committed")
    return is_whole


def _opened(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise CatError(f"Cannot open {path}: {error.strerror}") from None


class Feed:
    """Hands records to a producer, and tells what became of them."""

    def __init__(self, producer: Producer, topic: str, sending: Sending, talk: Talk) -> None:
        self._producer = producer
        self._topic = topic
        self._sending = sending
        self._talk = talk
        self._left = sending.count

    def lines(self, handle: int, size_max: int) -> bool:
        for lines in lines_of(handle, self._sending, size_max):
            if self._left is not None:
                lines = lines[: self._left]
                self._left -= len(lines)
            self._send(lines)
            if self._sending.is_teed:
                sys.stdout.buffer.write(b"".join(line.text for line in lines))
                sys.stdout.buffer.flush()
            if self._left == 0:
                break
        return True

    def files(self, paths: Sequence[str]) -> bool:
        """False when none of them could be read."""
        good = sum(map(self._file, paths))
        if 0 < good < len(paths):
            self._talk.say(f"Failed to produce from {len(paths) - good}/{len(paths)} files")
        return good > 0

    def _file(self, path: str) -> bool:
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            self._talk.say(f"Failed to open {path}: {error.strerror}")
            return False
        if data:
            self._send([Line(self._sending.fixed_key, data, data)])
        else:
            self._talk.say(f"Skipping empty file {path}", level=3)
        return True

    def _send(self, lines: Sequence[Line]) -> None:
        count, headers = len(lines), list(self._sending.headers)
        batch = load(WRITING).record_batch(
            [line.key for line in lines],
            [line.value for line in lines],
            [headers] * count if headers else None,
            [self._sending.partition] * count if self._sending.partition is not None else None,
            [None] * count,  # stamped as they are taken
        )
        self._producer.send_table(self._topic, batch)

    def flush(self) -> bool:
        """Wait for everything; whether all of it was written."""
        summary: Summary = self._producer.flush(raise_failures=False)
        for one, placed in sorted(summary.partitions.items()):
            where = f"{one.topic} [{one.partition}], offsets {placed.first_offset} to {placed.last_offset}"
            self._talk.say(f"{placed.rows} messages delivered to {where}", level=2)
        for failure in summary.failures:
            count = len(failure.rows)
            what = "message" if count == 1 else f"{count} messages"
            self._talk.say(f"Delivery failed for {what}: {failure.error}")
        return not summary.failed
