"""Runs of either, and what is compared of them."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

import pytest

from lowwater.cli.cat.command import command

TIMEOUT_S = 60
# Neither waits longer than needed for records, neither is short of time, and neither reads somebody's settings.
QUICKLY = ("-F", "none", "-X", "fetch.wait.max.ms=20", "-m", "60")
_LOG_LINE = re.compile(r"%\d\|")
_MEMBER = re.compile(r"memberid [^,)]+")


class Done(NamedTuple):
    """Exit code, output, and what was told beside it: sorted, without librdkafka's log and the names of members."""

    code: int
    out: bytes
    err: tuple[str, ...]

    @property
    def lines(self) -> list[bytes]:
        return sorted(self.out.splitlines())


def kcat(*arguments: str, stdin: bytes = b"", timeout_s: float = TIMEOUT_S) -> Done:
    done = subprocess.run(["kcat", *QUICKLY, *arguments], input=stdin, capture_output=True, timeout=timeout_s)
    return Done(done.returncode, done.stdout, told(done.stderr))


def cat(*arguments: str, stdin: bytes = b"") -> Done:
    """`lowwater cat` within this process, which is quicker than starting one each time."""
    code = 0
    with tempfile.TemporaryFile() as given, pytest.MonkeyPatch.context() as patch:
        given.write(stdin)
        given.seek(0)
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        patch.setattr(sys, "stdin", io.TextIOWrapper(given))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        try:
            command.main([*QUICKLY, *arguments], prog_name="lowwater cat")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        out.flush()
        err.flush()
    return Done(code, _written(out), told(_written(err)))


def told(stderr: bytes) -> tuple[str, ...]:
    lines = stderr.decode("utf-8", "surrogateescape").splitlines()
    return tuple(sorted(_MEMBER.sub("memberid …", line) for line in lines if line and not _LOG_LINE.match(line)))


def _written(file: io.TextIOWrapper) -> bytes:
    assert isinstance(file.buffer, io.BytesIO)
    return file.buffer.getvalue()


def problem(done: Done) -> str:
    """What a run that failed told: kcat prints its usage behind an error, click in front."""
    said = [line for line in done.err if line.startswith(("% ERROR: ", "Error: "))]
    return said[0].removeprefix("% ").partition(": ")[2] if said else ""
