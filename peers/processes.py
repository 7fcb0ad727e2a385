"""Child processes that end with us, however we end."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import weakref
from typing import Any

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
_alive: weakref.WeakSet[subprocess.Popen[Any]] = weakref.WeakSet()


def _die_with_parent() -> None:
    # A killed test run runs no atexit handler; the kernel ends the child instead.
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Popen in a session of its own; the whole group is killed when this process ends."""
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=_die_with_parent, **options)
    _alive.add(process)
    return process


def kill_group(process: subprocess.Popen[Any]) -> None:
    """SIGKILL to the process and all that it started; returns when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    _alive.discard(process)


@atexit.register
def _kill_all() -> None:
    for process in list(_alive):
        if process.poll() is None:
            kill_group(process)
