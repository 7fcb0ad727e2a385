"""`python -m examples.orders.check BOOTSTRAP [RUN_DIR]`: is the result what it has to be?

Recomputed from the topics in plain Python and compared row by row; then every record of the topics is accounted for.
Exit code 4 when anything differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from examples.orders.expected import Batch, Expected, Hour, Partition, Record, Sums, expected
from examples.orders.loading import DEAD_LETTERS
from examples.orders.reading import (
    UnreadableError,
    read_batches,
    read_committed,
    read_dead_letters,
    read_hours,
    read_logs,
)
from examples.orders.sample import TOPICS

GROUP = "orders-by-hour"
DIFFERS = 4
_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What is there after a run."""

    logs: Mapping[Partition, Mapping[int, Record]]
    batches: Sequence[Batch]
    hours: Mapping[Hour, Sums]
    dead_letters: Sequence[tuple[Partition, int, bytes | None]]
    committed: Mapping[Partition, int]

    @property
    def ends(self) -> dict[Partition, int]:
        """Up to where everything was read."""
        return {one: end for batch in self.batches for one, (_, end) in batch.ranges.items()}


def main(bootstrap: str, run_dir: str = "run") -> int:
    try:
        found = find(bootstrap, Path(run_dir))
        should = expected(found.logs, found.batches)
        problems = list(differences(found, should))
    except (OSError, UnreadableError) as error:
        print(f"The check could not be done: {error}")
        return DIFFERS
    print("\n".join(reconciled(found, should)))
    if not problems:
        print(f"\nChecked: all {len(found.hours):,} rows are those that plain Python finds in the topics.")
        return 0
    print(f"\nThe result differs from what plain Python finds in the topics ({len(problems):,} times):")
    for problem in problems[:_SHOWN_MAX]:
        print(f"  {problem}")
    return DIFFERS


def find(bootstrap: str, run_dir: Path) -> Found:
    logs = read_logs(bootstrap, TOPICS)
    return Found(
        logs=logs,
        batches=read_batches(run_dir / "checkpoint" / "by_hour"),
        hours=read_hours(run_dir / "by_hour"),
        dead_letters=read_dead_letters(bootstrap, DEAD_LETTERS),
        committed=read_committed(bootstrap, GROUP, sorted(logs)),
    )


def differences(found: Found, should: Expected) -> Iterator[str]:
    """Everything that is not as it should be."""
    for hour in sorted(should.closed.keys() | found.hours.keys()):
        if found.hours.get(hour) != should.closed.get(hour):
            yield f"{_moment(hour)} {hour.country}: {found.hours.get(hour)} instead of {should.closed.get(hour)}"
    yield from _misrouted(found, should)
    yield from _unread(found)
    for one, end in sorted(found.ends.items()):
        if found.committed.get(one) != end:
            yield f"{GROUP} has committed {found.committed.get(one)} of {_named(one)}, which was read up to {end}"
    for topic in TOPICS:
        records = sum(len(log) for (name, _), log in found.logs.items() if name == topic)
        if records != should.topics[topic].fates.total():
            yield f"{topic} has {records:,} records, of which {should.topics[topic].fates.total():,} are accounted for"


def _misrouted(found: Found, should: Expected) -> Iterator[str]:
    """Dead letters have to be the broken records, each at least once."""
    broken = {((name, partition), offset) for name in TOPICS for partition, offset in should.topics[name].broken}
    letters = {(one, offset) for one, offset, _ in found.dead_letters}
    for one, offset in sorted(broken ^ letters):
        what = "has no dead letter" if (one, offset) in broken else "is a dead letter, though nothing is wrong with it"
        yield f"offset {offset} of {_named(one)} {what}"
    for one, offset, value in found.dead_letters:
        if value != found.logs[one][offset].value:
            yield f"the dead letter of offset {offset} of {_named(one)} has another value"


def _unread(found: Found) -> Iterator[str]:
    for one, log in sorted(found.logs.items()):
        end = max(log, default=-1) + 1
        if found.ends.get(one, 0) != end:
            yield f"{_named(one)} was read up to {found.ends.get(one, 0)} of {end}"


def reconciled(found: Found, should: Expected) -> list[str]:
    """Where every record went, as a table."""
    closed = _orders_in(found.hours)
    titles = ["", *TOPICS]
    rows: list[list[str | int]] = [["records read", *(should.topics[topic].fates.total() for topic in TOPICS)]]
    rows += [["  in hours that are written", closed, *_joined(should.closed)]]
    rows += [["  in hours still open", _orders_in(should.open), *_joined(should.open)]]
    rows += [["  without an order in reach", 0, *_unmatched(should)]]
    for fate, title in (("late", "behind the watermark"), ("again", "sent twice"), ("forgotten", "tombstones")):
        rows.append([f"  {title}", *(should.topics[topic].fates[fate] for topic in TOPICS)])
    dead = {topic: len({(one, offset) for one, offset, _ in found.dead_letters if one[0] == topic}) for topic in TOPICS}
    rows.append(["  dead letters", *(dead[topic] for topic in TOPICS)])
    rows.append(["unaccounted for", *(_rest([row[place] for row in rows]) for place in range(1, 1 + len(TOPICS)))])
    return [_line(titles), *(_line(row) for row in rows)]


def _rest(column: Sequence[str | int]) -> int:
    """What the first number has more than the others together."""
    whole, *parts = map(int, column)
    return whole - sum(parts)


def _line(cells: Sequence[str | int]) -> str:
    first, *others = cells
    shown = (f"{cell:,}" if isinstance(cell, int) else cell for cell in others)
    return f"   {first:<28}" + "".join(f"{cell:>12}" for cell in shown)


def _orders_in(hours: Mapping[Hour, Sums]) -> int:
    return sum(sums.orders for sums in hours.values())


def _joined(hours: Mapping[Hour, Sums]) -> tuple[int, int]:
    return sum(sums.paid for sums in hours.values()), sum(sums.shipped for sums in hours.values())


def _unmatched(should: Expected) -> tuple[int, int]:
    """Payments and shipments that were taken, but no order wanted."""
    paid, shipped = (a + b for a, b in zip(_joined(should.closed), _joined(should.open), strict=True))
    return should.topics["payments"].fates["taken"] - paid, should.topics["shipments"].fates["taken"] - shipped


def _named(one: Partition) -> str:
    return f"{one[0]}-{one[1]}"


def _moment(hour: Hour) -> str:
    return f"{datetime.fromtimestamp(hour.begins_ms / 1000, UTC):%Y-%m-%d %H:%M}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
