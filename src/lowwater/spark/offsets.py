"""Where a streaming query stands: the value behind the text that Spark keeps in its checkpoint, and compares.

    {"lowwater": 1, "lineage": "5f2c9a1e",
     "topics": {"orders": {"id": "f9Gx2kq0T1i8mO3bq7n0Yw", "at": {"0": 1700, "1": 4}, "begin": {"1": 0}}}}

`at` is the next offset to read of every partition that is followed. `begin` is where those start that this offset is
the first to name: all of them at the end of batch 0, whose own start Spark does not keep, and new ones later. So any
batch can be read again by its two texts alone. `initial` marks what no batch has led to. `plan` is how a batch was
planned by time: see Plan. The text is canonical: keys in this order, topics by name, partitions by number, empty parts
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from lowwater.client.errors import TopicRecreatedError
from lowwater.errors import ErrorCode, LowwaterError
from lowwater.types import TopicPartition

VERSION = 1
OFFSET_MAX = (1 << 63) - 1
_PARTITION_MAX = (1 << 31) - 1
TIME_MAX = (1 << 63) - 1
NEVER_LATE_MS = -1
"""No record is stamped earlier; those without a time are not."""
_KEYS = frozenset({"lowwater", "lineage", "initial", "topics", "plan"})
_TOPIC_KEYS = frozenset({"id", "at", "begin"})
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_LINEAGE = re.compile(r"[0-9a-f]{8}", re.ASCII)
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_ANEW = "start anew, with another checkpoint location, and say where by `start` or `startingOffsets`"


class OffsetError(LowwaterError, ValueError):
    """An offset in a checkpoint that cannot be read, or two that do not belong together."""


class NewerOffsetError(OffsetError):
    """A later version of Lowwater wrote the checkpoint; half understood it would be read wrongly."""


class UnfinishedAdoptionError(OffsetError):
    """The first batch of the Kafka connector was never finished, and where it began is not shown to us."""


class Range(NamedTuple):
    """[start, end)"""

    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Place(NamedTuple):
    """Where a moment was split that has more records than a batch may: all before it, by this order, are read."""

    topic: str
    partition: int
    offset: int


class Bound(NamedTuple):
    """A place in the order of rows: by key, which is a time, by topic, partition and offset.

    Mostly that of a moment; within one only where a moment has more rows than an ordered task should.
    """

    key_ms: int
    topic: str = ""
    partition: int = 0
    offset: int = 0

    def to_json(self) -> int | list[int | str]:
        return list(self) if self.topic else self.key_ms


@dataclass(frozen=True, slots=True)
class Plan:
    """What of the planning of a batch has to be known to read it again, and to plan the next one.

        {"after": 1763250600000, "cut": 1763251200000, "rest": ["orders", 1, 5000], "due": 1763250000000,
         "others": {"payments": {"0": 300}}, "slices": [1763250900000], "disorder": 60000, "asked": 3, "ahead": 1}

    `cut_ms` is the moment before which the batch ends, `after_ms` that of the one before: rows stamped earlier are
    late. `rest`: the cut is not reached yet. `due_ms`: where the batch goes on with such a rest, what is late in
    it, which is what was late in the first with that cut. `others`: where partitions are then that are aligned with and
    not read. `slices`: the bounds between ordered tasks, and `out_of_order_ms` the
    `maxOutOfOrder` they were made with. `asked`: requests that it took; `ahead`: rows passed over although they are
    stamped at or behind the cut. These two are for people.
    """

    after_ms: int | None = None
    cut_ms: int | None = None
    rest: Place | None = None
    slices: tuple[Bound, ...] = ()
    out_of_order_ms: int | None = None
    asked: int = 0
    ahead: int = 0
    due_ms: int | None = None
    others: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def late_before_ms(self) -> int | None:
        """Rows stamped before this come after their cut; None: there was no cut before."""
        return self.after_ms if self.due_ms is None else self.due_ms

    @classmethod
    def parse(cls, given: Any) -> Plan:
        _check_keys(_object(given, "plan"), _PLAN_KEYS, "the plan of the offset")
        slices = _bounds(given.get("slices", []))
        plan = cls(
            _time_or_none(given, "after"),
            _time_or_none(given, "cut"),
            _place(given["rest"]) if "rest" in given else None,
            slices,
            _count(given, "disorder") if "disorder" in given else None,
            _count(given, "asked"),
            _count(given, "ahead"),
            _time_or_none(given, "due"),
            _places(given.get("others", {})),
        )
        if plan.cut_ms is None and given.keys() & {"rest", "after", "due", "others"}:
            raise _unreadable("its plan has no cut")
        return plan

    def to_json(self) -> dict[str, Any]:
        every = {
            "after": self.after_ms,
            "cut": self.cut_ms,
            "rest": None if self.rest is None else list(self.rest),
            "due": self.due_ms,
            "others": _numbered(self.others) or None,
            "slices": [bound.to_json() for bound in self.slices] or None,
            "disorder": self.out_of_order_ms,
            "asked": self.asked or None,
            "ahead": self.ahead or None,
        }
        return {name: value for name, value in every.items() if value is not None}


_PLAN_KEYS = frozenset({"after", "cut", "rest", "due", "others", "slices", "disorder", "asked", "ahead"})


@dataclass(frozen=True, slots=True)
class Offset:
    """`lineage` tells two queries apart that commit to one group; None: adopted from the Kafka connector."""

    at: Mapping[TopicPartition, int]
    begin: Mapping[TopicPartition, int] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    lineage: str | None = None
    is_initial: bool = False
    plan: Plan | None = None

    @classmethod
    def initial(cls, starts: Mapping[TopicPartition, int], ids: Mapping[str, str], lineage: str) -> Offset:
        """Where a query begins that has no checkpoint yet."""
        topics = {one.topic for one in starts}
        known = {topic: one for topic, one in ids.items() if topic in topics}
        return cls(dict(starts), ids=known, lineage=lineage, is_initial=True)

    @property
    def is_adopted(self) -> bool:
        """It stands there as the Kafka connector wrote it."""
        return self.lineage is None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Offset:
        """OffsetError says what is wrong with it, and what to do."""
        if not isinstance(given.get("lowwater", {}), int):
            return _adopted(given)  # the connector's own, perhaps of a topic of that name
        _check_version(given)
        _check_keys(given, _KEYS, "the offset")
        lineage = given.get("lineage")
        if not isinstance(lineage, str) or not _LINEAGE.fullmatch(lineage):
            raise _unreadable(f"its lineage is {lineage!r}")
        initial = given.get("initial", False)
        if not isinstance(initial, bool):
            raise _unreadable(f"its initial is {initial!r}")
        at, begin, ids = _topics(given.get("topics", {}))
        if initial and begin:
            raise _unreadable("an initial offset has a begin")
        plan = Plan.parse(given["plan"]) if "plan" in given else None
        if initial and plan is not None:
            raise _unreadable("an initial offset has a plan")
        return cls(at, begin, ids, lineage, initial, plan)

    def to_json(self) -> dict[str, Any]:
        """The canonical form, for json.dumps; that of the connector when it was adopted."""
        if self.lineage is None:
            return _numbered(self.at)
        found: dict[str, Any] = {"lowwater": VERSION, "lineage": self.lineage}
        if self.is_initial:
            found["initial"] = True
        if self.at:
            found["topics"] = self._topics_json()
        if self.plan is not None and (plan := self.plan.to_json()):
            found["plan"] = plan
        return found

    def _topics_json(self) -> dict[str, Any]:
        begins = _numbered(self.begin)
        topics = {}
        for topic, at in _numbered(self.at).items():
            entry: dict[str, Any] = {"id": self.ids[topic]} if topic in self.ids else {}
            entry["at"] = at
            if topic in begins:
                entry["begin"] = begins[topic]
            topics[topic] = entry
        return topics


def advance(
    start: Offset,
    ends: Mapping[TopicPartition, int],
    introduced: Mapping[TopicPartition, int],
    *,
    ids: Mapping[str, str],
    lineage: str | None = None,
    plan: Plan | None = None,
    also_empty: bool = False,
) -> Offset:
    """The end of the batch from `start` to `ends`; `start` itself when there is nothing to read.

    `introduced` says where partitions start that are not in `start`. `lineage` is taken when `start` has none. `plan`:
    how it was planned, by time; with `also_empty` that alone makes it another offset.
    """
    check_ids(start, ids)
    begins = {**start.at, **introduced}
    if not also_empty and all(end <= begins[one] for one, end in ends.items()):
        return start
    # A partition that is not there now keeps its place: it may only be hidden, and is never to be read twice.
    at = {**begins, **{one: max(end, begins[one]) for one, end in ends.items()}}
    topics = {one.topic for one in at}
    return Offset(
        at,
        begins if start.is_initial else dict(introduced),
        {**start.ids, **{topic: one for topic, one in ids.items() if topic in topics}},
        start.lineage or lineage,
        plan=plan,
    )


def ranges(start: Offset, end: Offset) -> dict[TopicPartition, Range]:
    """What the batch between the two reads of every partition, by name and number; also where that is nothing."""
    if end.is_initial:
        return {one: Range(at, at) for one, at in sorted(end.at.items())}
    if start.is_initial and end.is_adopted:
        raise UnfinishedAdoptionError(
            "the first batch of the Kafka connector in this checkpoint was never finished, and where it began is not "
            f'shown to other sources: let format("kafka") finish it first, or {_ANEW}'
        )
    check_ids(start, end.ids)
    return {one: Range(_begin(one, start, end), at) for one, at in sorted(end.at.items())}


def _begin(one: TopicPartition, start: Offset, end: Offset) -> int:
    begin = end.begin.get(one)
    if begin is None and not start.is_initial:
        # What initialOffset() says now need not be what it said when the batch was planned.
        begin = start.at.get(one)
    if begin is None:
        raise OffsetError(f"the checkpoint says where {one} ends in a batch, but not where it begins; {_ANEW}")
    if begin > end.at[one]:
        raise OffsetError(f"the checkpoint has a batch that goes from {begin} back to {end.at[one]} in {one}; {_ANEW}")
    return begin


def check_ids(offset: Offset, ids: Mapping[str, str]) -> None:
    """TopicRecreatedError for a topic that has another id than the offset; one whose id is not told is trusted."""
    for topic, expected in offset.ids.items():
        found = ids.get(topic, expected)
        if found != expected:
            error = TopicRecreatedError(ErrorCode.INCONSISTENT_TOPIC_ID, topic=topic, advice=_ANEW)
            raise error.instead_of(expected, found)


# -- reading


def _check_version(given: Mapping[str, Any]) -> None:
    version = given["lowwater"]
    if isinstance(version, bool) or version < 1:
        raise _unreadable(f"its version is {version!r}")
    if version > VERSION:
        raise NewerOffsetError(
            f"the checkpoint was written in format {version} by a later version of Lowwater, and this one reads format "
            f"{VERSION}: install that version, on driver and executors"
        )


def _check_keys(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise NewerOffsetError(
            f"{where} has {', '.join(unknown)}, which this version of Lowwater does not know: "
            "install the version that wrote the checkpoint, on driver and executors"
        )


def _topics(
    topics: Any,
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], dict[str, str]]:
    at: dict[TopicPartition, int] = {}
    begin: dict[TopicPartition, int] = {}
    ids: dict[str, str] = {}
    for topic, entry in _object(topics, "topics").items():
        _check_keys(_object(entry, topic), _TOPIC_KEYS, f"the offset of {topic}")
        found_at = _partitions(topic, entry.get("at"))
        found_begin = _partitions(topic, entry.get("begin", {}))
        if any(one not in found_at or offset > found_at[one] for one, offset in found_begin.items()):
            raise _unreadable(f"{topic} begins where it does not go on")
        at.update(found_at)
        begin.update(found_begin)
        if "id" in entry:
            ids[topic] = _topic_id(topic, entry["id"])
    return at, begin, ids


def _topic_id(topic: str, given: Any) -> str:
    if not isinstance(given, str) or not _TOPIC_ID.fullmatch(given):
        raise _unreadable(f"the id of {topic} is {given!r}")
    return given


def _partitions(topic: str, given: Any) -> dict[TopicPartition, int]:
    found = {}
    for number, offset in _object(given, topic).items():
        if not _NUMBER.fullmatch(number) or int(number) > _PARTITION_MAX:
            raise _unreadable(f"{topic} has a partition {number!r}")
        if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset <= OFFSET_MAX:
            raise _unreadable(f"{topic}-{number} is at {offset!r}")
        found[TopicPartition(topic, int(number))] = offset
    return found


def _time(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or abs(given) > TIME_MAX:
        raise _unreadable(f"a time in its plan is {given!r}")
    return given


def _time_or_none(given: Mapping[str, Any], name: str) -> int | None:
    return _time(given[name]) if name in given else None


def _count(given: Mapping[str, Any], name: str) -> int:
    count = given.get(name, 0)
    if _time(count) < 0:
        raise _unreadable(f"{name} of its plan is {count!r}")
    return int(count)


def _bounds(given: Any) -> tuple[Bound, ...]:
    bounds = tuple(map(_bound, given)) if isinstance(given, list) else None
    if bounds is None or any(before >= after for before, after in pairwise(bounds)):
        raise _unreadable(f"its slices are {given!r}")
    return bounds


def _bound(given: Any) -> Bound:
    return Bound(_time(given[0]), *_place(given[1:])) if isinstance(given, list) and given else Bound(_time(given))


def _place(given: Any) -> Place:
    if not isinstance(given, list) or len(given) != 3 or not isinstance(given[0], str):
        raise _unreadable(f"the rest of its plan is {given!r}")
    [(one, offset)] = _partitions(given[0], {str(given[1]): given[2]}).items()
    return Place(one.topic, one.partition, offset)


def _places(given: Any) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _object(given, "others").items():
        found.update(_partitions(topic, partitions))
    return found


def _object(given: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise _unreadable(f"{what} is {given!r}")
    return given


def _adopted(given: Mapping[str, Any]) -> Offset:
    at: dict[TopicPartition, int] = {}
    for topic, partitions in given.items():
        at.update(_partitions(topic, partitions))
    return Offset(at)


def _unreadable(why: str) -> OffsetError:
    return OffsetError(f"the checkpoint has an offset that neither Lowwater nor the Kafka connector wrote: {why}")


def _numbered(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    topics: dict[str, dict[str, int]] = {}
    for one, offset in sorted(offsets.items()):
        topics.setdefault(one.topic, {})[str(one.partition)] = offset
    return topics
