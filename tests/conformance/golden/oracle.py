"""Kafka's own generated classes, in one JVM that answers line by line (java/GoldenBytes.java)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

from peers import java

SOURCE = Path(__file__).resolve().parent.parent / "java" / "GoldenBytes.java"


class Oracle:
    """Use as a context manager; ValueError is what Kafka refuses."""

    def __enter__(self) -> Oracle:
        command = java.command("GoldenBytes", classes=java.compiled(SOURCE))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=30)

    def decode(self, cls: type, version: int, data: bytes) -> tuple[dict[str, Any], bytes]:
        """What Kafka reads out of `data`, and the bytes it writes for that."""
        answer = self._ask({"do": "decode", "name": cls.__name__, "version": version, "hex": data.hex()})
        if answer["left"]:
            raise ValueError(f"Kafka left {answer['left']} bytes unread")
        return answer["json"], bytes.fromhex(answer["hex"])

    def encode(self, cls: type, version: int, message: dict[str, Any]) -> bytes:
        """The bytes Kafka writes for a message given as JSON."""
        answer = self._ask({"do": "encode", "name": cls.__name__, "version": version, "json": message})
        return bytes.fromhex(answer["hex"])

    def convert(self, cls: type, version: int, data: bytes, to_version: int) -> bytes:
        """What Kafka writes in another version for `data`; ValueError when that version cannot carry it."""
        request = {"do": "convert", "name": cls.__name__, "version": version, "hex": data.hex(), "to": to_version}
        return bytes.fromhex(self._ask(request)["hex"])

    def end_marker(self, producer_id: int, epoch: int, commit: bool, coordinator_epoch: int, timestamp: int) -> bytes:
        """The control batch with which Kafka ends a transaction."""
        request = {"do": "marker", "producer": producer_id, "epoch": epoch, "commit": commit}
        return bytes.fromhex(self._ask(request | {"coordinator": coordinator_epoch, "time": timestamp})["hex"])

    def apis(self) -> list[dict[str, Any]]:
        apis: list[dict[str, Any]] = self._ask({"do": "apis"})["apis"]
        return apis

    def errors(self) -> list[tuple[int, str, bool]]:
        return [(code, name, retriable) for code, name, retriable in self._ask({"do": "errors"})["errors"]]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the Java process ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ValueError(answer["error"])
        return answer
