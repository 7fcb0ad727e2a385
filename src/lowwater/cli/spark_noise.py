"""Keeping what Spark says at every start from those who did not ask: stderr of the processes that it starts, sifted."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Iterator

# Of Java and of Spark, however healthy everything is.
_ALWAYS = re.compile(
    r"WARNING: Using incubator modules"
    r"|Using Spark's default log4j profile"
    r"|Setting default log level to"
    r"|To adjust logging level use"
    r"|Setting Spark log level to"
    r"|.* WARN Utils: (Your hostname|Set SPARK_LOCAL_IP)"
    r"|.* WARN NativeCodeLoader: "
)
_TRACEBACK = "Traceback (most recent call last):"
# A worker that Spark has let go finds its connection closed.
_LET_GO = re.compile(r"pyspark/daemon\.py.*\n(?:.*\n)*BrokenPipeError", re.MULTILINE)


class Sieve:
    """Lines in, and those that say something out."""

    def __init__(self) -> None:
        self._traceback: list[str] = []

    def taken(self, line: str) -> list[str]:
        if self._traceback:
            self._traceback.append(line)
            return [] if line.startswith((" ", "\t")) else self.rest()
        if line.startswith(_TRACEBACK):
            self._traceback.append(line)
            return []
        return [] if _ALWAYS.match(line) else [line]

    def rest(self) -> list[str]:
        """What was held back, unless it means nothing."""
        lines, self._traceback = self._traceback, []
        return [] if _LET_GO.search("".join(lines)) else lines


@contextlib.contextmanager
def sifted_children() -> Iterator[None]:
    """Processes that are started inside have a sifted stderr, for as long as they live. Our own stays as it is."""
    sys.stderr.flush()
    reading, writing = os.pipe()
    kept = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=_sift, args=(reading, os.dup(kept)), name="lowwater-stderr", daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _sift(reading: int, writing: int) -> None:
    sieve = Sieve()
    with open(reading, errors="backslashreplace") as lines, open(writing, "w", errors="backslashreplace") as out:
        for line in lines:
            out.writelines(sieve.taken(line))
            out.flush()
        out.writelines(sieve.rest())
