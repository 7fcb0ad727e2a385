"""The states of a transactional id. Old paths add partitions by themselves, new ones let Produce do it (v12)."""

from __future__ import annotations

from tests.conformance.txn_cells.asks import Add, AddOffsets, CommitOffset, End, Init, Until, Write
from tests.conformance.txn_cells.play import State

OLD_ADD, OLD_END, OLD_WRITE, OLD_OFFSET = 3, 4, 11, 4
SOON_MS = 400
LONG_AGO_MS = 1_000_000_000_000

_BEGUN = (Init("A"), Add("A", v=OLD_ADD))
_WRITTEN = (*_BEGUN, Write("A", v=OLD_WRITE))
_NEW = (Init("A"), Write("A"))

UNKNOWN = State("Unknown")
EMPTY = State("Empty", (Init("A"),))
BEGUN = State("Ongoing", _BEGUN)
WRITTEN = State("Ongoing, written", _WRITTEN)
NEW = State("Ongoing, new path", _NEW)
COMMITTED = State("Committed", (*_WRITTEN, End("A", v=OLD_END)))
ABORTED = State("Aborted", (*_WRITTEN, End("A", commit=False, v=OLD_END)))
NEW_COMMITTED = State("Committed, new path", (*_NEW, End("A")))
NEW_ABORTED = State("Aborted, new path", (*_NEW, End("A", commit=False)))
BEGUN_COMMITTED = State("Committed without a record", (*_BEGUN, End("A", v=OLD_END)))
FENCED = State("A newer instance", (Init("A"), Init("B")))
FENCED_BUSY = State("A newer instance at work", (Init("A"), Init("B"), Add("B", v=OLD_ADD), Write("B", v=OLD_WRITE)))
OVERTAKEN = State("A newer instance aborted", (*_WRITTEN, Init("B")))
NEW_OVERTAKEN = State("A newer instance aborted, new path", (*_NEW, Init("B")))
TIMED_OUT = State(
    "Timed out",
    (Init("A", timeout_ms=SOON_MS), Add("A", v=OLD_ADD), Write("A", v=OLD_WRITE), Until("A", state="CompleteAbort")),
)
NEW_TIMED_OUT = State(
    "Timed out, new path", (Init("A", timeout_ms=SOON_MS), Write("A"), Until("A", state="CompleteAbort"))
)
OFFSETS = State("Offsets pending", (Init("A"), AddOffsets("A", v=3), CommitOffset("A", v=OLD_OFFSET)))
NEW_OFFSETS = State("Offsets pending, new path", (Init("A"), CommitOffset("A")))
AGAIN = State("Empty again", (*_WRITTEN, End("A", v=OLD_END), Init("A")))
SECOND = State("Ongoing, the second", (*_WRITTEN, End("A", v=OLD_END), Add("A", v=OLD_ADD), Write("A", v=OLD_WRITE)))
NEW_SECOND = State("Ongoing, the second, new path", (*_NEW, End("A"), Write("A")))
ANOTHER_WRITES = State(
    "Aborted beside another",
    (Init("A"), Init("C", id="+c"), Write("A"), Write("C", id="+c"), End("A", commit=False), Write("A")),
)
ANOTHER_COMMITTED = State("Committed around another", (*ANOTHER_WRITES.asks, End("C", id="+c"), End("A", commit=False)))

LONG_AGO = State("Committed long after it was written", (Init("A"), Write("A", timestamp=LONG_AGO_MS), End("A")))

IDLE = (UNKNOWN, EMPTY, AGAIN)
ONGOING = (BEGUN, WRITTEN, NEW, SECOND, NEW_SECOND)
OVER = (COMMITTED, ABORTED, NEW_COMMITTED, NEW_ABORTED, BEGUN_COMMITTED)
TAKEN_AWAY = (FENCED, FENCED_BUSY, OVERTAKEN, NEW_OVERTAKEN, TIMED_OUT, NEW_TIMED_OUT)
LATER_EPOCH = (AGAIN, NEW_COMMITTED, NEW_ABORTED, NEW_SECOND)
"""In the others the epoch before is -1, which is none."""
ALL = (*IDLE, *ONGOING, *OVER, *TAKEN_AWAY)
