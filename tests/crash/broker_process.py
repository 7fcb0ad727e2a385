"""`lowwater broker` as a real process that can be killed, stopped and started again on the same port."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path

READY = re.compile(r"lowwater broker ready kafka=(?P<host>[^ ]+):(?P<port>\d+) data=")
START_TIMEOUT_S = 180


class BrokerProcess:
    """One data directory; `start` returns when the broker said that it is ready."""

    def __init__(self, data_dir: Path, settings: dict[str, str] | None = None, *, port: int = 0) -> None:
        self.data_dir = data_dir
        self.settings = settings or {}
        self.port = port
        self.log = data_dir.parent / f"{data_dir.name}.stderr"
        self.process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def start(self, *, prefix: tuple[str, ...] = (), environment: dict[str, str] | None = None) -> float:
        """Run the broker; how many seconds it took to be ready. `prefix` goes before the command (prlimit …)."""
        began = time.monotonic()
        command = [*prefix, sys.executable, "-m", "lowwater.cli.main", "broker", "--no-http"]
        command += ["--port", str(self.port), "--data-dir", str(self.data_dir)]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **(environment or {})}
            )
        self.port = self._ready_port(began + START_TIMEOUT_S)
        return time.monotonic() - began

    def kill(self) -> None:
        """kill -9, and wait until the process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """A clean stop; its exit code."""
        return self._end(signal.SIGTERM)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(START_TIMEOUT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        return code

    def _ready_port(self, deadline: float) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                line = self.process.stdout.readline()
                if found := READY.search(line):
                    return int(found["port"])
                if not line:
                    raise RuntimeError(f"the broker ended with {self.process.wait()}:\n{self.log_tail()}")
        raise TimeoutError(f"the broker was not ready within {START_TIMEOUT_S} s:\n{self.log_tail()}")
