"""A member by kcat's -G: a small program around it that turns what kcat prints to events."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from typing import IO, Any

from tests.conformance.groups.hosts.serving import Hosted, polled, serve, told

REBALANCED = re.compile(
    r"% Group \S+ rebalanced \(memberid [^)]*\): (?P<what>assigned|revoked|unassigned): ?(?P<places>.*)"
)
PLACE = re.compile(r"(\S+) \[(\d+)\]")


class Kcat(Hosted):
    """kcat commits by itself and takes no commands; leaving is SIGTERM."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def join(self, how: dict[str, Any]) -> None:
        settings = {
            "client.id": how["client_id"],
            "session.timeout.ms": how["session_timeout_ms"],
            "heartbeat.interval.ms": how["heartbeat_ms"],
            "max.poll.interval.ms": max(how["rebalance_timeout_ms"], how["session_timeout_ms"]),
            "partition.assignment.strategy": how["assignor"],
            "auto.offset.reset": how["reset"],
            "topic.metadata.refresh.interval.ms": how["metadata_age_ms"],
            "auto.commit.interval.ms": how["auto_commit_ms"] or 5000,
            "fetch.wait.max.ms": 50,
        }
        if how["instance"]:
            settings["group.instance.id"] = how["instance"]
        command = ["kcat", "-b", how["bootstrap"], "-u", "-f", "%t %p %o\n"]
        for name, value in settings.items():
            command += ["-X", f"{name}={value}"]
        command += ["-G", how["group"], *([how["pattern"]] if how["pattern"] else how["topics"])]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **pipes)
        threading.Thread(target=self._records, args=(self.process.stdout,), daemon=True).start()
        threading.Thread(target=self._rebalances, args=(self.process.stderr,), daemon=True).start()

    @staticmethod
    def _records(output: IO[str]) -> None:
        for line in output:
            topic, partition, offset = line.split()
            polled(topic, int(partition), [int(offset)])

    @staticmethod
    def _rebalances(output: IO[str]) -> None:
        for line in output:
            if found := REBALANCED.match(line):
                places = [(topic, int(partition)) for topic, partition in PLACE.findall(found["places"])]
                told("assigned" if found["what"] == "assigned" else "revoked", places)

    def poll(self) -> None:
        """kcat polls by itself; wait for it, so that this loop does not spin."""
        assert self.process is not None
        try:
            self.process.wait(0.05)
        except subprocess.TimeoutExpired:
            return
        os._exit(1)

    def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        raise AssertionError("kcat commits by itself")

    def committed(self, places: list[tuple[str, int]]) -> list[int | None]:
        raise AssertionError("kcat cannot be asked")

    def seek(self, topic: str, partition: int, offset: int) -> None:
        raise AssertionError("kcat cannot seek")

    def close(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def code_of(self, error: Exception) -> int:
        return -1


if __name__ == "__main__":
    serve(Kcat())
