"""Assignors on groups whose right answer is plain to see. `tests/model/test_sticky.py` has the rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lowwater.groups.assignors import Assignment, MemberSpec, Spec, assign

NAMES = ("range", "roundrobin", "sticky", "uniform")
BALANCED = ("sticky", "uniform")


def group(partitions: dict[str, int], /, **members: str | MemberSpec) -> Spec:
    """Members by id; a string names the topics it subscribes to."""
    specs = {
        member_id: MemberSpec(frozenset(given.split())) if isinstance(given, str) else given
        for member_id, given in members.items()
    }
    return Spec(specs, partitions)


def owner(topics: str, **owned: list[int]) -> MemberSpec:
    return MemberSpec(frozenset(topics.split()), owned)


def loads(assignment: Assignment) -> dict[str, int]:
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}


# -- all of them


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    topics = st.sampled_from("abcdef")
    owned = st.dictionaries(topics, st.lists(st.integers(-1, 30), max_size=9), max_size=4)
    instances = st.one_of(st.none(), st.text("xyz", max_size=2))
    members = st.builds(MemberSpec, st.frozensets(topics), owned, instances, st.none())
    by_id = st.dictionaries(st.text("klmnopq", min_size=1, max_size=2), members, max_size=12)
    return Spec(draw(by_id), draw(st.dictionaries(topics, st.integers(0, 25))))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(spec=specs())
def test_every_partition_somebody_subscribes_to_goes_to_one_subscriber(name: str, spec: Spec) -> None:
    assignment = assign((name, spec))
    assert assignment.keys() == spec.members.keys()
    given_out = [
        (topic, number)
        for member_id, topics in assignment.items()
        for topic, numbers in topics.items()
        if topic in spec.members[member_id].topics
        for number in numbers
    ]
    wanted = frozenset[str]().union(*(member.topics for member in spec.members.values()))
    assert sorted(given_out) == sorted(
        (topic, number) for topic in wanted for number in range(spec.partitions.get(topic, 0))
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_group_without_members_is_assigned_nothing(name: str) -> None:
    assert assign((name, Spec({}, {"t": 3}))) == {}


@pytest.mark.parametrize("name", NAMES)
def test_more_members_than_partitions_leave_some_with_nothing(name: str) -> None:
    assignment = assign((name, group({"t": 2}, a="t", b="t", c="t")))
    assert sorted(loads(assignment).values()) == [0, 1, 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_topic_that_does_not_exist_is_left_out(name: str) -> None:
    assert assign((name, group({}, a="t", b="t"))) == {"a": {}, "b": {}}


@pytest.mark.parametrize("name", NAMES)
def test_members_in_any_order_are_assigned_the_same(name: str) -> None:
    spec = group({"t": 5, "u": 4}, a="t u", b="t", c="u", d="t u")
    backwards = Spec(dict(reversed(spec.members.items())), dict(reversed(spec.partitions.items())))
    assert assign((name, spec)) == assign((name, backwards))


# -- range


def test_range_gives_neighbouring_partitions_and_the_first_members_one_more() -> None:
    assignment = assign(("range", group({"t": 7}, a="t", b="t", c="t")))
    assert assignment == {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4]}, "c": {"t": [5, 6]}}


def test_range_cuts_topics_of_the_same_size_alike() -> None:
    assignment = assign(("range", group({"t": 3, "u": 3}, a="t u", b="t u")))
    assert assignment == {"a": {"t": [0, 1], "u": [0, 1]}, "b": {"t": [2], "u": [2]}}


def test_range_cuts_each_topic_among_its_own_subscribers() -> None:
    assignment = assign(("range", group({"t": 2, "u": 2}, a="t", b="t u", c="u")))
    assert assignment == {"a": {"t": [0]}, "b": {"t": [1], "u": [0]}, "c": {"u": [1]}}


def test_static_members_come_first_in_the_order_of_their_instances() -> None:
    topics = frozenset({"t"})
    members = {
        "a": MemberSpec(topics),
        "b": MemberSpec(topics, instance_id="two"),
        "c": MemberSpec(topics, instance_id="one"),
    }
    assert assign(("range", Spec(members, {"t": 3}))) == {"c": {"t": [0]}, "b": {"t": [1]}, "a": {"t": [2]}}


def test_a_static_member_that_comes_back_with_another_id_has_the_same_range() -> None:
    def members(returning: str) -> dict[str, MemberSpec]:
        topics = frozenset({"t"})
        return {returning: MemberSpec(topics, instance_id="one"), "b": MemberSpec(topics, instance_id="two")}

    before = assign(("range", Spec(members("a"), {"t": 4})))
    after = assign(("range", Spec(members("z"), {"t": 4})))
    assert before["a"] == after["z"]


# -- round-robin


def test_round_robin_deals_across_topics() -> None:
    assignment = assign(("roundrobin", group({"t": 3, "u": 3}, a="t u", b="t u")))
    assert assignment == {"a": {"t": [0, 2], "u": [1]}, "b": {"t": [1], "u": [0, 2]}}


def test_round_robin_passes_over_who_does_not_subscribe() -> None:
    assignment = assign(("roundrobin", group({"t": 1, "u": 2, "v": 3}, a="t", b="t u", c="t u v")))
    assert assignment == {"a": {"t": [0]}, "b": {"u": [0]}, "c": {"u": [1], "v": [0, 1, 2]}}


# -- sticky and uniform


@pytest.mark.parametrize("name", BALANCED)
def test_a_new_member_takes_from_those_who_have_most(name: str) -> None:
    spec = group({"t": 6}, a=owner("t", t=[0, 1, 2]), b=owner("t", t=[3, 4, 5]), c="t")
    assignment = assign((name, spec))
    assert set(loads(assignment).values()) == {2}
    assert set(assignment["a"]["t"]) < {0, 1, 2}
    assert set(assignment["b"]["t"]) < {3, 4, 5}


@pytest.mark.parametrize("name", BALANCED)
def test_an_overloaded_member_gives_up_its_surplus_and_no_more(name: str) -> None:
    spec = group({"t": 6}, a=owner("t", t=[0, 1, 2, 3, 4, 5]), b="t", c="t")
    assignment = assign((name, spec))
    assert loads(assignment) == {"a": 2, "b": 2, "c": 2}
    assert set(assignment["a"]["t"]) < {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("name", BALANCED)
def test_of_two_who_may_have_one_more_the_one_who_has_it_keeps_it(name: str) -> None:
    spec = group({"t": 3}, a=owner("t", t=[0]), b=owner("t", t=[1, 2]))
    assert assign((name, spec)) == {"a": {"t": [0]}, "b": {"t": [1, 2]}}


@pytest.mark.parametrize("name", BALANCED)
def test_partitions_that_are_gone_are_not_kept(name: str) -> None:
    spec = group({"t": 2}, a=owner("t u", t=[0, 5], u=[0, 1]), b=owner("t u", t=[1]))
    assert assign((name, spec)) == {"a": {"t": [0]}, "b": {"t": [1]}}


@pytest.mark.parametrize("name", BALANCED)
def test_what_a_member_no_longer_subscribes_to_goes_to_another(name: str) -> None:
    spec = group({"t": 2, "u": 2}, a=owner("u", t=[0, 1], u=[0]), b=owner("t u", u=[1]))
    assert assign((name, spec)) == {"a": {"u": [0, 1]}, "b": {"t": [0, 1]}}


@pytest.mark.parametrize("name", BALANCED)
def test_a_partition_that_two_claim_stays_with_the_first(name: str) -> None:
    spec = group({"t": 2}, a=owner("t", t=[0]), b=owner("t", t=[0]))
    assert assign((name, spec)) == {"a": {"t": [0]}, "b": {"t": [1]}}


@pytest.mark.parametrize("name", BALANCED)
def test_who_can_read_anything_leaves_the_rest_to_those_who_cannot(name: str) -> None:
    spec = group({"t": 2, "u": 4}, a="t", b="t u", c="u")
    assert sorted(loads(assign((name, spec))).values()) == [2, 2, 2]
    assert assign((name, spec))["a"] == {"t": [0, 1]}


@pytest.mark.parametrize("name", BALANCED)
def test_balance_is_reached_through_a_chain_of_members(name: str) -> None:
    # Only b can take from a, and only c from b: a gives t to b, b gives u to c.
    spec = group({"t": 3, "u": 2}, a=owner("t", t=[0, 1, 2]), b=owner("t u", u=[0, 1]), c="u")
    assert sorted(loads(assign((name, spec))).values()) == [1, 2, 2]


@pytest.mark.parametrize("name", BALANCED)
def test_the_partitions_of_a_topic_are_spread_over_its_subscribers(name: str) -> None:
    assignment = assign((name, group({"t": 4, "u": 4}, a="t u", b="t u", c="t u", d="t u")))
    assert all(len(topics) == 2 for topics in assignment.values())
