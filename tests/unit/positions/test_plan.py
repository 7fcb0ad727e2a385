"""Wishes become offsets in as few questions as possible."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.positions.grammar import parse_start
from lowwater.positions.plan import EARLIEST, LATEST, Questions, Resolution, UnresolvedError
from lowwater.types import TopicPartition

NOW_MS = 10_000_000
CARS = TopicPartition("cars", 0)


@dataclass
class Log:
    """A partition of a tiny cluster: offsets [first, next), each stamped with 1,000 times its offset."""

    first: int = 0
    next: int = 0
    committed: int | None = None

    def answer(self, asked: int) -> int:
        if asked == EARLIEST:
            return self.first
        if asked == LATEST:
            return self.next
        return next((one for one in range(self.first, self.next) if one * 1000 >= asked), -1)


@dataclass
class Cluster:
    logs: dict[TopicPartition, Log]
    list_offsets: int = 0
    offset_fetches: int = 0
    rounds: list[Questions] = field(default_factory=list)

    def resolve(self, wishes: dict[TopicPartition, str], *, ends: bool = False) -> Resolution:
        resolution = Resolution({one: parse_start(wish) for one, wish in wishes.items()}, NOW_MS, ends=ends)
        while questions := resolution.questions():
            self.rounds.append(questions)
            self.list_offsets += len(questions.offsets)
            self.offset_fetches += bool(questions.committed)
            answers: dict[TopicPartition, dict[int, int]] = {}
            for request in questions.offsets:
                for one, asked in request.items():
                    answers.setdefault(one, {})[asked] = self.logs[one].answer(asked)
            resolution.take({one: self.logs[one].committed for one in questions.committed}, answers)
        return resolution


def start_of(wish: str, log: Log) -> int:
    return Cluster({CARS: log}).resolve({CARS: wish}).starts[CARS]


@pytest.mark.parametrize(
    ("wish", "log", "start"),
    [
        ("earliest", Log(0, 0), 0),
        ("earliest", Log(7, 12), 7),
        ("latest", Log(0, 0), 0),
        ("latest", Log(0, 10), 10),
        ("0", Log(0, 5), 0),
        ("3", Log(0, 5), 3),
        ("8", Log(0, 5), 8),  # whether it is there shows when it is read
        ("-5", Log(0, 10), 5),
        ("-5", Log(0, 3), 0),
        ("-5", Log(6, 10), 6),
        ("-0", Log(0, 10), 10),
        ("s@3500", Log(0, 10), 4),
        ("s@4000", Log(0, 10), 4),
        ("s@0", Log(3, 10), 3),
        ("-1000s", Log(0, 9100), 9000),
        ("s@99000", Log(0, 10), 10),  # none that late: the end
        ("s@99000|earliest", Log(2, 10), 2),
        ("stored", Log(0, 10, committed=4), 4),
        ("stored|earliest", Log(2, 10), 2),
        ("stored|s@3500|earliest", Log(0, 10), 4),
        ("stored|s@99000|earliest", Log(2, 10), 2),
        ("stored|-3", Log(0, 10), 7),
        ("stored|earliest", Log(0, 10, committed=0), 0),
    ],
)
def test_a_wish_becomes_this_offset(wish: str, log: Log, start: int) -> None:
    assert start_of(wish, log) == start


def test_a_group_that_never_committed_needs_a_fallback() -> None:
    with pytest.raises(UnresolvedError, match=r"cars-0.*stored\|earliest") as refused:
        start_of("stored", Log(0, 10))
    assert refused.value.partitions == {CARS}


def test_an_absolute_offset_asks_nothing() -> None:
    cluster = Cluster({CARS: Log(0, 5)})
    assert cluster.resolve({CARS: "3"}).starts == {CARS: 3}
    assert not cluster.rounds


@pytest.mark.parametrize(
    ("wish", "ends", "requests", "fetches"),
    [
        ("earliest", False, 1, 0),
        ("latest", False, 1, 0),
        ("latest", True, 1, 0),
        ("s@3500", False, 1, 0),
        ("-5", False, 2, 0),
        ("-5", True, 2, 0),
        ("earliest", True, 2, 0),
        ("s@3500", True, 2, 0),
        ("stored", False, 0, 1),
        ("stored", True, 1, 1),
        ("stored|earliest", True, 2, 1),
        ("17", True, 1, 0),
    ],
)
def test_a_thousand_partitions_take_as_many_requests_as_one(wish: str, ends: bool, requests: int, fetches: int) -> None:
    places = [TopicPartition("cars", index) for index in range(1000)]
    committed = None if "|" in wish else 4
    cluster = Cluster({one: Log(0, 10, committed=committed) for one in places})
    cluster.resolve(dict.fromkeys(places, wish), ends=ends)
    assert (cluster.list_offsets, cluster.offset_fetches) == (requests, fetches)


def test_different_wishes_share_their_requests() -> None:
    wishes = dict(enumerate(["earliest", "latest", "s@3500", "17", "stored", "-5"]))
    cluster = Cluster({TopicPartition("cars", one): Log(0, 10, committed=4) for one in wishes})
    cluster.resolve({TopicPartition("cars", one): wish for one, wish in wishes.items()})
    assert (cluster.list_offsets, cluster.offset_fetches, len(cluster.rounds)) == (2, 1, 1)


def test_ends_are_those_of_the_moment_of_asking() -> None:
    cluster = Cluster({CARS: Log(3, 10), TopicPartition("cars", 1): Log(0, 0)})
    resolution = cluster.resolve(dict.fromkeys(cluster.logs, "earliest"), ends=True)
    assert resolution.ends == {CARS: 10, TopicPartition("cars", 1): 0}


WISH_PARTS = st.sampled_from(["earliest", "latest", "stored", "3", "-4", "s@2500", "s@999000", "-9999s", "today"])


@given(
    st.lists(
        st.tuples(
            st.lists(WISH_PARTS, min_size=1, max_size=3),
            st.integers(0, 8),
            st.integers(0, 8),
            st.none() | st.integers(0, 16),
        ),
        min_size=1,
        max_size=5,
    ),
    st.booleans(),
)
def test_nothing_is_asked_twice_and_every_start_is_what_was_wished(
    partitions: list[tuple[list[str], int, int, int | None]], ends: bool
) -> None:
    places = [TopicPartition("cars", index) for index in range(len(partitions))]
    cluster = Cluster(
        {
            one: Log(first, first + count, committed)
            for one, (_, first, count, committed) in zip(places, partitions, strict=True)
        }
    )
    wishes = {one: "|".join([*parts, "latest"]) for one, (parts, *_) in zip(places, partitions, strict=True)}
    resolution = cluster.resolve(wishes, ends=ends)
    asked = [(one, what) for round_ in cluster.rounds for request in round_.offsets for one, what in request.items()]
    assert len(asked) == len(set(asked))
    for one in places:
        assert resolution.starts[one] == _expected(wishes[one], cluster.logs[one])
        if ends:
            assert resolution.ends[one] == cluster.logs[one].next


def _expected(wish: str, log: Log) -> int:
    """One choice after the other, without any thought of requests."""
    for text in wish.split("|"):
        if text == "stored":
            found = log.committed
        elif text in ("earliest", "latest"):
            found = log.first if text == "earliest" else log.next
        elif text == "3":
            found = 3
        elif text == "-4":
            found = max(log.first, log.next - 4)
        else:
            times = {"s@2500": 2500, "s@999000": 999_000, "-9999s": NOW_MS - 9_999_000, "today": 0}
            found = log.answer(times[text])
            found = None if found < 0 else found
        if found is not None:
            return found
    raise AssertionError("the last choice always has an answer")
