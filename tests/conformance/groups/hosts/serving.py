"""The loop of a Python host: commands come in as JSON lines, answers and events go out the same way."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

POLL_S = 0.05
_writing = threading.Lock()
_out = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1 << 16)


def emit(**line: Any) -> None:
    with _writing:
        _out.write(json.dumps(line) + "\n")
        _out.flush()


def told(event: str, places: Iterable[tuple[str, int]]) -> None:
    """An assignment event: assigned, revoked or lost."""
    emit(event=event, places=sorted([topic, partition] for topic, partition in places))


def polled(topic: str, partition: int, offsets: list[int]) -> None:
    emit(event="polled", topic=topic, partition=partition, offsets=offsets)


def failed(code: int, detail: object) -> None:
    emit(event="failed", code=code, detail=str(detail))


class FatalError(Exception):
    """The member cannot go on; the broker's error code."""

    def __init__(self, code: int, detail: object) -> None:
        super().__init__(str(detail))
        self.code = code


class Hosted(ABC):
    """One member. All of it runs on one thread, as these libraries want it."""

    @abstractmethod
    def join(self, how: dict[str, Any]) -> None: ...

    @abstractmethod
    def poll(self) -> None:
        """Wait for records for at most POLL_S, tell what came. FatalError when the member is out for good."""

    @abstractmethod
    def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        """These offsets, or the positions after what was polled; returns when they are committed."""

    @abstractmethod
    def committed(self, places: list[tuple[str, int]]) -> list[int | None]: ...

    @abstractmethod
    def seek(self, topic: str, partition: int, offset: int) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Leave as the library leaves."""

    @abstractmethod
    def code_of(self, error: Exception) -> int:
        """The broker's code of a library's exception; -1 when it is none."""


def serve(hosted: Hosted) -> None:
    """Until `close`, or until nobody gives commands any more."""
    commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(commands,), daemon=True).start()
    polling = False
    while True:
        try:
            command = commands.get(block=not polling)
        except queue.Empty:
            polling = _poll(hosted)
            continue
        if command is None:
            os._exit(0)
        call = command.pop("call")
        if call in ("hold", "go_on"):
            polling = call == "go_on"
            emit(answer=command["id"], result=None)
            continue
        _perform(hosted, call, command)
        polling = call == "join" or polling
        if call == "close":
            os._exit(0)


def _read(commands: queue.SimpleQueue[dict[str, Any] | None]) -> None:
    for line in sys.stdin:
        commands.put(json.loads(line))
    commands.put(None)


def _poll(hosted: Hosted) -> bool:
    """Whether to poll again."""
    try:
        hosted.poll()
    except FatalError as error:
        failed(error.code, error)
        return False
    return True


def _perform(hosted: Hosted, call: str, command: dict[str, Any]) -> None:
    number = command.pop("id")
    command.pop("member")
    try:
        emit(answer=number, result=getattr(hosted, call)(**command))
    except Exception as error:
        emit(answer=number, error=hosted.code_of(error), detail=repr(error))
