"""`lowwater …` as a user runs it: in this process for speed, and in a terminal of a given width."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from lowwater.cli.main import main

LIMIT_S = 60
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """For the modules that import it: whose machine this is does not matter."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("LOWWATER_CONFIG", "LOWWATER_BOOTSTRAP", "KCAT_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str


def lowwater(*arguments: str, stdin: str = "") -> Done:
    """What the command prints, and how it exits; stdin is no terminal."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["lowwater", *arguments]))
        stack.enter_context(mock.patch.object(sys, "stdin", io.StringIO(stdin)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            main()
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    return Done(code, out.getvalue(), err.getvalue())


def in_terminal(columns: int, *arguments: str, typed: str = "") -> Done:
    """What a terminal of that width shows, without colours, what was typed included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "lowwater.cli.main", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown = b""
    with contextlib.suppress(OSError):  # how a terminal ends
        while data := os.read(ours, 1 << 16):
            shown += data
    os.close(ours)
    return Done(process.wait(LIMIT_S), _ANSI.sub("", shown.decode()).replace("\r\n", "\n"), "")
