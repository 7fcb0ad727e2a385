"""What is told beside the output, as kcat tells it: lines on stderr that begin with %."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from lowwater.cli.printing import printable_lines
from lowwater.errors import LowwaterError


class CatError(LowwaterError):
    """Ends the command with exit code 1."""


@dataclass(frozen=True, slots=True)
class Talk:
    """`verbosity`: 0 with -q, 1 usually, one more for each -v. `goes_on`: -E."""

    verbosity: int = 1
    goes_on: bool = False

    def say(self, text: str, level: int = 1) -> None:
        if self.verbosity >= level:
            tell(f"% {text}")

    def trouble(self, text: str) -> None:
        """Something is wrong that one may want to live with: CatError, or with -E a line."""
        if not self.goes_on:
            raise CatError(f"{text}: terminating")
        tell(f"% ERROR: {text}")


def tell(text: str) -> None:
    """Names come from brokers and files: none of them talks to the terminal."""
    print(printable_lines(text), file=sys.stderr, flush=True)
