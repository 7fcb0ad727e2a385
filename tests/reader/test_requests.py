"""How many questions each start position takes, as docs/start-positions.md says: counted by the broker itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lowwater
from lowwater import Admin, NewTopic, TopicPartition
from lowwater.testing import Broker
from lowwater.wire.records import Record

PARTITIONS = 1_000
COMMITTED = {TopicPartition("wide", number): 0 for number in range(PARTITIONS)}
OLD_MS = 1_000


@pytest.fixture(scope="module")
def wide() -> Iterator[Broker]:
    """A thousand partitions, one of which has two old records; a group that has committed in all of them."""
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("wide", partitions=PARTITIONS)]).checked()
        broker.fill("wide", 7, next=2, generate=lambda offset: Record(offset, OLD_MS, None, b""))
        admin.alter_group_offsets("everywhere", COMMITTED).checked()
        yield broker


def asked(broker: Broker, start: str, group: str | None = None) -> tuple[int, int]:
    """ListOffsets and OffsetFetch requests until every start and end is known."""
    before = broker.requests()
    with lowwater.read("wide", bootstrap=broker.bootstrap, start=start, group=group, join=False) as reader:
        assert len(reader.starts) == len(reader.ends) == PARTITIONS
        after = broker.requests()
    lists, fetches = (after.get(name, 0) - before.get(name, 0) for name in ("ListOffsets", "OffsetFetch"))
    return lists, fetches


@pytest.mark.parametrize(
    ("start", "lists"),
    [
        ("latest", 1),
        ("0", 1),
        ("earliest", 2),
        ("-5", 2),
        (f"s@{OLD_MS}", 2),
        ("-1h", 2),
        (f"s@{OLD_MS}|latest", 2),
        ("-1h|earliest", 3),
    ],
)
def test_ends_are_one_request_and_each_other_question_is_one_more(wide: Broker, start: str, lists: int) -> None:
    assert asked(wide, start) == (lists, 0)


@pytest.mark.parametrize(
    ("start", "lists"), [("stored", 1), ("stored|earliest", 1), ("stored|-5|earliest", 1), ("earliest", 2), ("-5", 2)]
)
def test_a_group_that_has_committed_is_asked_once(wide: Broker, start: str, lists: int) -> None:
    assert asked(wide, start, "everywhere") == (lists, 1)


@pytest.mark.parametrize(("start", "lists"), [("stored|earliest", 2), ("stored|latest", 1), ("stored|-5", 2)])
def test_a_group_that_has_not_is_asked_once_too(wide: Broker, start: str, lists: int) -> None:
    assert asked(wide, start, "nobody") == (lists, 1)
