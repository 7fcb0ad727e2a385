"""Clients that live on while the broker restarts: nothing is lost, doubled or renumbered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conformance.clients import DRIVERS
from tests.conformance.clients.base import EARLIEST, LATEST, Can, Driver, Producing, Record
from tests.conformance.conftest import create_topic
from tests.conformance.under_test import UnderTest

BEFORE = [Record(b"before-%d" % each, b"k", (("h", b"1"),)) for each in range(10)]
AFTER = [Record(b"after-%d" % each, b"k") for each in range(10)]
IDEMPOTENT = Producing(codec="lz4", idempotent=True)

pytestmark = [pytest.mark.peer(driver.peer) for driver in DRIVERS.values()]


@pytest.fixture
def all_clients(own_broker: Callable[..., UnderTest]) -> Iterator[tuple[UnderTest, list[Driver]]]:
    broker = own_broker()
    drivers = [driver(broker.bootstrap) for driver in DRIVERS.values()]
    for driver in drivers:
        create_topic(broker.address, f"of-{driver.name}")
    yield broker, drivers
    for driver in drivers:
        driver.close()


def test_every_client_goes_on_after_a_restart(all_clients: tuple[UnderTest, list[Driver]]) -> None:
    broker, drivers = all_clients
    for driver in drivers:
        driver.produce(f"of-{driver.name}", BEFORE, IDEMPOTENT)
        assert len(driver.consume(f"of-{driver.name}", 10)) == 10
    broker.restart()
    for driver in drivers:
        topic = f"of-{driver.name}"
        driver.produce(topic, AFTER, IDEMPOTENT)
        received = driver.consume(topic, 20)
        assert [each.offset for each in received] == list(range(20)), driver.name
        assert [each.record.value for each in received] == [each.value for each in BEFORE + AFTER], driver.name
        assert received[0].record.headers == (("h", b"1"),), driver.name
        if Can.OFFSETS_FOR_TIMES in driver.can:
            assert driver.offset_at(topic, EARLIEST).offset == 0
            assert driver.offset_at(topic, LATEST).offset == 20
