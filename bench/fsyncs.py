"""How often a process asked the disk to make something durable, counted from outside with perf.

Counting slows every system call of the machine a little, so workloads count in their warm-up round only.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from peers import processes

CALLS = ("fsync", "fdatasync", "msync", "syncfs", "sync_file_range")


def can_count() -> bool:
    """perf is there, and the kernel lets us use its system-call events."""
    if shutil.which("perf") is None:
        return False
    trial = subprocess.run(["perf", "stat", "-x;", "-e", _events(), "--", "true"], capture_output=True, text=True)
    return trial.returncode == 0 and "not supported" not in trial.stderr


def _events() -> str:
    return ",".join(f"syscalls:sys_enter_{call}" for call in CALLS)


class SyncCount:
    """`with SyncCount(pid) as count: …`, then `count.calls`: name -> how often; None where it cannot be counted."""

    def __init__(self, pid: int, *, enabled: bool = True) -> None:
        self._pid = pid
        self._enabled = enabled
        self._perf: subprocess.Popen[bytes] | None = None
        self._folder = ""
        self.calls: dict[str, int] | None = None

    @property
    def total(self) -> int | None:
        return None if self.calls is None else sum(self.calls.values())

    def __enter__(self) -> SyncCount:
        if self._enabled:
            self._start()
        return self

    def _start(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="lowwater-perf-")
        control, acknowledge = f"{self._folder}/control", f"{self._folder}/acknowledge"
        os.mkfifo(control)
        os.mkfifo(acknowledge)
        # Disabled until told, so that we know from when on it counts.
        command = ["perf", "stat", "-x;", "-D", "-1", "-e", _events(), "-p", str(self._pid)]
        command += ["--control", f"fifo:{control},{acknowledge}", "-o", f"{self._folder}/counts"]
        self._perf = processes.start(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(control, "wb", buffering=0) as ask, open(acknowledge, "rb", buffering=0) as told:
            ask.write(b"enable\n")
            told.read(4)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self._perf is None:
            return
        self._perf.send_signal(signal.SIGINT)
        self._perf.wait()
        self.calls = _parse(Path(self._folder, "counts").read_text())
        shutil.rmtree(self._folder, ignore_errors=True)


def _parse(counts: str) -> dict[str, int]:
    calls = dict.fromkeys(CALLS, 0)
    for line in counts.splitlines():
        cells = line.split(";")
        if len(cells) > 2 and cells[0].isdigit():
            calls[cells[2].rpartition("sys_enter_")[2]] += int(cells[0])
    return {call: times for call, times in calls.items() if times}
