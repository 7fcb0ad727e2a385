"""How little a reader asks: counted by the broker itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lowwater
from lowwater import Admin, NewTopic
from lowwater.testing import Broker

PARTITIONS = 1_000


@pytest.mark.parametrize("start", ["earliest", "latest", "-5", "s@5", "stored|-5|earliest"])
def test_a_thousand_partitions_are_resolved_by_two_requests_and_one_for_the_group(start: str, wide: Broker) -> None:
    before = wide.requests()
    with lowwater.read("wide", bootstrap=wide.bootstrap, start=start, group="g", join=False) as reader:
        assert len(reader.starts) == PARTITIONS
        after = wide.requests()
    assert after["ListOffsets"] - before.get("ListOffsets", 0) <= 2
    assert after["OffsetFetch"] - before.get("OffsetFetch", 0) <= 1


def test_absolute_offsets_are_not_asked_for_but_the_ends_are(wide: Broker) -> None:
    before = wide.requests()
    with lowwater.read("wide", bootstrap=wide.bootstrap, start=0, stop="latest") as reader:
        assert list(reader) == []
        after = wide.requests()
    assert after["ListOffsets"] - before.get("ListOffsets", 0) == 1


@pytest.fixture(scope="module")
def wide() -> Iterator[Broker]:
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        admin.create_topics([NewTopic("wide", partitions=PARTITIONS)]).checked()
        yield broker
