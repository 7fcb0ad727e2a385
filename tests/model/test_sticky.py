"""The sticky assignor against all assignments there are: it finds one of the best, on groups small enough to try them.

Larger groups are held against an oracle that is slow but plain: partitions are added one by one, each by the cheapest
chain of moves. The oracle too is held against all assignments.

Best: the numbers of partitions of the members, largest first, are the least that the subscriptions allow; and of all
assignments with those numbers, the fewest partitions leave their owner.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Iterator

from hypothesis import event, given, settings
from hypothesis import strategies as st

from lowwater.groups.assignors import Assignment, MemberSpec, Spec, assign

EXAMPLES = int(os.environ.get("LOWWATER_STICKY_EXAMPLES", "300"))
TOPICS = ("a", "b", "c", "d")
TRIES_MAX = 20_000

Partition = tuple[str, int]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """Groups whose members subscribe as they like and claim what they like: also what is gone or claimed twice."""
    counts = draw(st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 5), max_size=4))
    topics = st.frozensets(st.sampled_from(TOPICS))
    owned = st.dictionaries(st.sampled_from(TOPICS), st.lists(st.integers(0, 5), unique=True, max_size=5), max_size=4)
    members = st.builds(MemberSpec, topics, owned, st.none())
    by_id = st.dictionaries(st.sampled_from("stuvw"), members, max_size=5)
    return draw(by_id.map(lambda found: Spec(found, counts)).filter(_is_small))


def _is_small(spec: Spec) -> bool:
    tries = 1
    for _, takers in _partitions(spec):
        tries *= len(takers)
    return tries <= TRIES_MAX


def _partitions(spec: Spec) -> Iterator[tuple[Partition, list[str]]]:
    """Every partition that somebody subscribes to, and who does."""
    for topic, count in spec.partitions.items():
        takers = [member_id for member_id, member in spec.members.items() if topic in member.topics]
        if takers:
            yield from (((topic, number), takers) for number in range(count))


def _owners(spec: Spec) -> dict[Partition, str]:
    """Who owned each partition; the first by id where several say so and may keep it."""
    owners: dict[Partition, str] = {}
    for member_id in sorted(spec.members):
        member = spec.members[member_id]
        for topic in member.owned.keys() & member.topics:
            for number in member.owned[topic]:
                owners.setdefault((topic, number), member_id)
    return owners


def _worth(members: list[str], takers: tuple[str, ...], owners: tuple[str | None, ...]) -> tuple[list[int], int]:
    loads = Counter(takers)
    moved = sum(1 for taker, owner in zip(takers, owners, strict=True) if taker != owner)
    return sorted((loads[each] for each in members), reverse=True), moved


def _best(spec: Spec) -> tuple[list[int], int]:
    """Loads and movement of the best assignment, by trying all."""
    partitions = list(_partitions(spec))
    known = _owners(spec)
    owners = tuple(known.get(partition) for partition, _ in partitions)
    choices = itertools.product(*(takers for _, takers in partitions))
    return min(_worth(list(spec.members), takers, owners) for takers in choices)


def _by_cheapest_chains(spec: Spec) -> tuple[list[int], int]:
    """What `_best` finds, for groups of any size."""
    takers = dict(_partitions(spec))
    owners = _owners(spec)
    loads = dict.fromkeys(spec.members, 0)
    places: dict[Partition, str] = {}
    for partition in takers:
        chains = _chains(partition, takers, owners, places)
        end = min(chains, key=lambda member: (loads[member], chains[member][0]))
        loads[end] += 1
        member: str | None = end
        while member is not None:
            _, giver, moved = chains[member]
            places[moved] = member
            member = giver
    moved_in_all = sum(1 for partition, member in places.items() if owners.get(partition) != member)
    return sorted(loads.values(), reverse=True), moved_in_all


Chains = dict[str, tuple[int, str | None, Partition]]


def _chains(
    partition: Partition, takers: dict[Partition, list[str]], owners: dict[Partition, str], places: dict[Partition, str]
) -> Chains:
    """For every member that could end up with one more: what that costs, who gives to it, and which partition."""
    found: Chains = {member: (int(owners.get(partition) != member), None, partition) for member in takers[partition]}
    shorter = True
    while shorter:
        shorter = False
        for moved, giver in places.items():
            if giver not in found:
                continue
            before = found[giver][0] - (owners.get(moved) != giver)
            for member in takers[moved]:
                cost = before + (owners.get(moved) != member)
                if member not in found or cost < found[member][0]:
                    found[member] = (cost, giver, moved)
                    shorter = True
    return found


def _group(seed: int) -> Spec:
    """A group of up to seven members and topics, with what they might own of topics that grow and shrink."""
    of = random.Random(seed)
    topics = [f"t{number}" for number in range(of.randint(1, 7))]
    density = of.choice((0.3, 0.5, 0.8))
    subscribed = {f"m{number}": frozenset(t for t in topics if of.random() < density) for number in range(7)}
    members = dict(itertools.islice(subscribed.items(), of.randint(1, 7)))
    owned: dict[str, dict[str, list[int]]] = {member: {} for member in members}
    for topic, number in itertools.product(topics, range(of.randint(0, 8))):
        claimants = [member for member in members if topic in members[member] or of.random() < 0.1]
        if claimants and of.random() < 0.9:
            owner = of.choice(claimants) if of.random() < 0.7 else claimants[0]
            owned[owner].setdefault(topic, []).append(number)
    by_id = {member: MemberSpec(subscription, owned[member]) for member, subscription in members.items()}
    return Spec(by_id, {topic: of.randint(0, 6) for topic in topics})


def _found(spec: Spec) -> tuple[list[int], int]:
    """Loads and movement of what the assignor made."""
    takers = _takers(assign(("sticky", spec)))
    owners = _owners(spec)
    return _worth(list(spec.members), tuple(takers.values()), tuple(owners.get(partition) for partition in takers))


def _takers(assignment: Assignment) -> dict[Partition, str]:
    taken = [
        ((topic, number), member_id)
        for member_id, topics in assignment.items()
        for topic, numbers in topics.items()
        for number in numbers
    ]
    assert len(dict(taken)) == len(taken), "a partition has two owners"
    return dict(taken)


@settings(max_examples=EXAMPLES, deadline=None)
@given(specs())
def test_sticky_is_balanced_and_moves_the_fewest_partitions(spec: Spec) -> None:
    best = _best(spec)
    event(f"moves {best[1]}")
    assert _found(spec) == best
    assert _by_cheapest_chains(spec) == best


def test_sticky_is_balanced_and_moves_the_fewest_partitions_in_larger_groups() -> None:
    for seed in range(10 * EXAMPLES):
        spec = _group(seed)
        assert _found(spec) == _by_cheapest_chains(spec), f"seed {seed}"


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(specs())
def test_sticky_gives_every_partition_to_one_subscriber(spec: Spec) -> None:
    assignment = assign(("sticky", spec))
    takers = _takers(assignment)
    assert assignment.keys() == spec.members.keys()
    assert takers.keys() == {partition for partition, _ in _partitions(spec)}
    assert all(partition[0] in spec.members[taker].topics for partition, taker in takers.items())


@settings(max_examples=EXAMPLES // 3, deadline=None)
@given(specs())
def test_what_sticky_assigned_it_assigns_again(spec: Spec) -> None:
    assignment = assign(("sticky", spec))
    again = {each: MemberSpec(member.topics, assignment[each]) for each, member in spec.members.items()}
    assert assign(("sticky", Spec(again, spec.partitions))) == assignment
