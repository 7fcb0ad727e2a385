"""Names that no other test of the run uses: most suites share one broker."""

from __future__ import annotations

import itertools

_numbers = itertools.count(1)


def fresh(label: str) -> str:
    return f"{label}-{next(_numbers)}"
