"""The assignors on large groups: the time they take, and how it grows with the group."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Mapping

from bench.plan import Run
from bench.report import Row, number
from lowwater.groups.assignors import Assignment, MemberSpec, Spec, assign

TEXT = "assignors: 100,000 partitions × 1,000 members, equal and mixed subscriptions; no broker"
HEADER = (
    "subscriptions",
    "assignor",
    "first, ms",
    "× half the group's",
    "× half its input",
    "one left, ms",
    "moved",
    "one more, ms",
    "moved",
)
PARTITIONS_PER_TOPIC = 100
PARTITIONS_PER_MEMBER = 100
NAMES = ("sticky", "range", "roundrobin")
LEAVER, JOINER = "member-00007", "member-joins"
GOAL_MS = 3000

Subscribe = Callable[[list[str], int], list[frozenset[str]]]


def _equal(topics: list[str], members: int) -> list[frozenset[str]]:
    return [frozenset(topics)] * members


def _two(topics: list[str], members: int) -> list[frozenset[str]]:
    return [frozenset(topics), frozenset(topics[: len(topics) // 2])] * (members // 2)


def _random(topics: list[str], members: int) -> list[frozenset[str]]:
    """Every member another half."""
    half = random.Random(1)
    return [frozenset(half.sample(topics, len(topics) // 2)) for _ in range(members)]


def _nested(topics: list[str], members: int) -> list[frozenset[str]]:
    """Every member a little more than the one before; the first topics are everybody's, the last the last one's."""
    return [frozenset(topics[: max(1, len(topics) * (place + 1) // members)]) for place in range(members)]


SUBSCRIPTIONS: Mapping[str, Subscribe] = {
    "equal": _equal,
    "two kinds": _two,
    "random halves": _random,
    "nested": _nested,
}


def run(plan: Run) -> None:
    partitions = plan.size.assigned_partitions
    rows: list[Row] = []
    for kind, subscribe in SUBSCRIPTIONS.items():
        for name in NAMES:
            figures = _measure(name, subscribe, partitions)
            plan.report.keep(f"{kind}, {name}", figures)
            rows.append(_row(kind, name, figures))
            if name == NAMES[0]:
                what = f"{partitions:,} partitions, {kind} subscriptions, {name}, slowest of the three, ms"
                slowest = max(figures["first_ms"], figures["left_ms"], figures["joined_ms"])
                plan.report.target(what, slowest, GOAL_MS, at_least=False)
    members = partitions // PARTITIONS_PER_MEMBER
    title = f"{partitions:,} partitions in topics of {PARTITIONS_PER_TOPIC}, {members:,} members"
    plan.report.table(title, HEADER, rows)


def group(subscribe: Subscribe, partitions: int) -> Spec:
    topics = [f"topic-{place:05d}" for place in range(partitions // PARTITIONS_PER_TOPIC)]
    subscribed = subscribe(topics, partitions // PARTITIONS_PER_MEMBER)
    members = {f"member-{place:05d}": MemberSpec(one) for place, one in enumerate(subscribed)}
    return Spec(members, dict.fromkeys(topics, PARTITIONS_PER_TOPIC))


def _measure(name: str, subscribe: Subscribe, partitions: int) -> dict[str, float]:
    half = group(subscribe, partitions // 2)
    half_ms, _ = _timed(name, half)
    spec = group(subscribe, partitions)
    first_ms, assignment = _timed(name, spec)
    owning = {each: MemberSpec(member.topics, assignment[each]) for each, member in spec.members.items()}
    left = Spec({each: member for each, member in owning.items() if each != LEAVER}, spec.partitions)
    left_ms, after_left = _timed(name, left)
    joined = Spec({**owning, JOINER: MemberSpec(spec.members[LEAVER].topics)}, spec.partitions)
    joined_ms, after_joined = _timed(name, joined)
    return {
        "first_ms": first_ms,
        "growth": first_ms / half_ms,
        "input_growth": _input(spec) / _input(half),
        "left_ms": left_ms,
        "left_moved": _moved(left, after_left),
        "joined_ms": joined_ms,
        "joined_moved": _moved(joined, after_joined),
    }


def _input(spec: Spec) -> int:
    """Partitions, and topics that members name: of subscriptions that are the same object, once."""
    different = {id(member.topics): len(member.topics) for member in spec.members.values()}
    return sum(spec.partitions.values()) + sum(different.values())


def _timed(name: str, spec: Spec) -> tuple[float, Assignment]:
    """CPU time, the better of two: nothing but this process matters."""
    best = float("inf")
    for _ in range(2):
        gc.collect()
        started = time.process_time()
        assignment = assign((name, spec))
        best = min(best, 1000 * (time.process_time() - started))
    return best, assignment


def _moved(spec: Spec, assignment: Assignment) -> int:
    """Partitions that are not where they were; those of a member that left have to move."""
    kept = sum(
        len(set(partitions) & set(spec.members[member].owned.get(topic, ())))
        for member, topics in assignment.items()
        for topic, partitions in topics.items()
    )
    return sum(len(partitions) for topics in assignment.values() for partitions in topics.values()) - kept


def _row(kind: str, name: str, figures: dict[str, float]) -> Row:
    columns = ("first_ms", "growth", "input_growth", "left_ms", "left_moved", "joined_ms", "joined_moved")
    return (kind, name, *(number(figures[column]) for column in columns))
