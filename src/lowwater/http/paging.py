"""Long lists in pages: a page ends with the name after which the next one begins."""

from __future__ import annotations

from bisect import bisect_right

from lowwater.http.schema import integer, string

LIMIT = integer("How many at most.", default=100, minimum=1, maximum=1_000)
AFTER = string("The `next` of the page before.")


def page(names: list[str], limit: int, after: str | None) -> tuple[list[str], str | None]:
    """Some of the sorted `names`, and where the next page begins; None when this is the last."""
    first = 0 if after is None else bisect_right(names, after)
    shown = names[first : first + limit]
    return shown, shown[-1] if first + limit < len(names) else None
