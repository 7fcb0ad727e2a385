"""What the kernel knows of a process: CPU time, memory, context switches, file handles."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, also of those that ended; in nanosecond steps, unlike /proc/<pid>/stat."""
    return time.clock_gettime(~pid << 3 | 2)


@dataclass(frozen=True, slots=True)
class Memory:
    """Megabytes (10^6). `anonymous` is what the process allocated itself; the rest maps files."""

    rss: float
    peak_rss: float
    pss: float
    anonymous: float


def memory(pid: int) -> Memory:
    fields = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value = line.split(":")
        fields[name] = int(value.split()[0]) * 1024 / 1e6
    return Memory(fields["Rss"], _peak_rss(pid), fields["Pss"], fields["Anonymous"])


def _peak_rss(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"/proc/{pid}/status names no VmHWM")


@dataclass(frozen=True, slots=True)
class Switches:
    """Context switches of all live threads. A voluntary one ends in a wake-up."""

    voluntary: int
    involuntary: int


def switches(pid: int) -> Switches:
    voluntary = involuntary = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{pid}/task/{task}/status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    voluntary += int(line.split()[1])
                elif line.startswith("nonvoluntary_ctxt_switches"):
                    involuntary += int(line.split()[1])
    return Switches(voluntary, involuntary)


def file_handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def maps(pid: int) -> int:
    return Path(f"/proc/{pid}/maps").read_bytes().count(b"\n")


def threads(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def parent(pid: int) -> int:
    """0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def descendants(pid: int) -> list[int]:
    """All that it started, and what those started."""
    parents = {int(name): parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    found, layer = [], {pid}
    while layer:
        layer = {one for one, its in parents.items() if its in layer}
        found += sorted(layer)
    return found


def forget_peak(pid: int) -> None:
    """Its peak counts from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
