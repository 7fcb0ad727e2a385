"""What members tell each other, and what a leader makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.client.group_world import at

from lowwater.client.group_assigning import (
    COOPERATIVE,
    STICKY,
    Owned,
    Sharing,
    is_cooperative,
    partitions_of,
    strategies,
    subscription,
)
from lowwater.errors import ConfigError
from lowwater.groups.consumer_protocol import (
    ConsumerProtocolSubscription,
    StickyUserData,
    decode_subscription,
    encode_subscription,
)
from lowwater.groups.consumer_protocol import TopicPartition as OfTopic
from lowwater.wire.schema import encoder

NOTHING = Owned()


def owned(*numbers: int, generation: int = 1) -> Owned:
    return Owned(frozenset(at(*numbers)), generation)


def share(name: str, said: dict[str, bytes], **counts: int) -> dict[str, list[int]]:
    """What each member is given of topic t."""
    shares = Sharing(name, {member: (None, data) for member, data in said.items()}).assign(counts)
    return {member: sorted(one.partition for one in partitions_of(data)) for member, data in shares.items()}


def says(name: str, has: Owned = NOTHING, had: Owned = NOTHING) -> bytes:
    return subscription(name, ["t"], has, had, None)


def test_strategies_have_their_names_of_the_wire_and_those_of_java() -> None:
    java = "org.apache.kafka.clients.consumer."
    given_names = [java + "RangeAssignor", java + "CooperativeStickyAssignor", "sticky", "RoundRobinAssignor", "range"]
    assert strategies(given_names) == ("range", COOPERATIVE, STICKY, "roundrobin")


@pytest.mark.parametrize("names", [[], ["fair"], ["range", ""]])
def test_others_are_refused(names: list[str]) -> None:
    with pytest.raises(ConfigError, match="roundrobin"):
        strategies(names)


def test_partitions_are_kept_through_a_rebalance_only_when_every_strategy_allows_it() -> None:
    assert is_cooperative([COOPERATIVE])
    assert not is_cooperative([COOPERATIVE, "range"])


def test_range_and_round_robin_share_as_their_names_say() -> None:
    assert share("range", {"a": says("range"), "b": says("range")}, t=5) == {"a": [0, 1, 2], "b": [3, 4]}
    assert share("roundrobin", {"a": says("range"), "b": says("range")}, t=5) == {"a": [0, 2, 4], "b": [1, 3]}


def test_a_member_whose_words_are_not_understood_is_given_nothing() -> None:
    assert share("range", {"a": says("range"), "b": b"\xff"}, t=2) == {"a": [0, 1], "b": []}


def test_sticky_members_get_back_what_they_had() -> None:
    said = {"a": says(STICKY, had=owned(1, 3)), "b": says(STICKY, had=owned(0, 2)), "c": says(STICKY)}
    shared = share(STICKY, said, t=4)
    assert set(shared["a"]) <= {1, 3}
    assert set(shared["b"]) <= {0, 2}
    assert len(shared["c"]) == 1


def test_sticky_members_of_older_clients_are_understood() -> None:
    had = StickyUserData(previous_assignment=[OfTopic(topic="t", partitions=[1])])
    older = ConsumerProtocolSubscription(topics=["t"], user_data=encoder(StickyUserData, 0)(had), owned_partitions=[])
    assert share(STICKY, {"a": says(STICKY), "b": encode_subscription(older, 0)}, t=2) == {"a": [0], "b": [1]}


def test_of_two_who_had_a_partition_the_later_one_keeps_it() -> None:
    said = {"a": says(STICKY, had=owned(0, generation=1)), "b": says(STICKY, had=owned(0, generation=2))}
    assert share(STICKY, said, t=2) == {"a": [1], "b": [0]}


def test_a_partition_that_is_in_use_is_given_to_nobody_until_it_is_given_up() -> None:
    first = share(COOPERATIVE, {"a": says(COOPERATIVE, owned(0, 1)), "b": says(COOPERATIVE)}, t=2)
    assert first["b"] == []
    assert len(first["a"]) == 1
    then = share(COOPERATIVE, {"a": says(COOPERATIVE, owned(*first["a"])), "b": says(COOPERATIVE)}, t=2)
    assert then["a"] == first["a"]
    assert sorted(then["a"] + then["b"]) == [0, 1]


def test_the_generation_of_a_cooperative_member_is_found_where_older_clients_put_it() -> None:
    said = decode_subscription(says(COOPERATIVE, owned(0, generation=7)))
    assert said is not None
    older = encode_subscription(said, 1)  # has no field for it
    newer = says(COOPERATIVE, owned(0, generation=6))
    shared = share(COOPERATIVE, {"a": newer, "b": older}, t=1)
    assert shared == {"a": [], "b": []}, "both still have it; b keeps it when a has given it up"
    assert share(COOPERATIVE, {"a": says(COOPERATIVE), "b": older}, t=1) == {"a": [], "b": [0]}


def test_a_cooperative_member_that_tells_no_generation_loses_against_one_that_does() -> None:
    said = decode_subscription(says(COOPERATIVE, owned(0)))
    assert said is not None
    said.user_data = None
    oldest = encode_subscription(said, 1)
    keeps = says(COOPERATIVE, owned(0, generation=1))
    assert share(COOPERATIVE, {"a": keeps, "b": oldest}, t=1) == {"a": [], "b": []}
    assert share(COOPERATIVE, {"a": keeps, "b": says(COOPERATIVE)}, t=1) == {"a": [0], "b": []}


claims = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(st.frozensets(st.integers(0, 9), max_size=6), st.integers(1, 3)),
    min_size=1,
)


@given(claims, st.integers(0, 10))
def test_cooperative_rounds_never_give_what_is_in_use_and_end_balanced(
    claimed: dict[str, tuple[frozenset[int], int]], count: int
) -> None:
    held = {member: set(numbers) for member, (numbers, _) in claimed.items()}
    generations = {member: generation for member, (_, generation) in claimed.items()}
    for generation in range(4, 10):
        said = {
            member: says(COOPERATIVE, owned(*numbers, generation=generations[member]))
            for member, numbers in held.items()
        }
        shared = share(COOPERATIVE, said, t=count)
        for member, numbers in shared.items():
            for other, theirs in held.items():
                assert other == member or not theirs & set(numbers)
        generations = dict.fromkeys(held, generation)
        was, held = held, {member: set(numbers) for member, numbers in shared.items()}
        if was == held:
            break
    given_out = [number for numbers in held.values() for number in numbers]
    assert sorted(given_out) == list(range(count))
    sizes = [len(numbers) for numbers in held.values()]
    assert max(sizes) - min(sizes) <= 1


def test_an_empty_share_may_be_no_bytes_at_all() -> None:
    assert partitions_of(b"") == frozenset()
