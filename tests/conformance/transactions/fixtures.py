"""The brokers of the transaction suites, with times short enough for tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.groups.stage import wait_for_coordinator
from tests.conformance.transactions.kinds import NEWEST, Kind
from tests.conformance.transactions.lines import HOSTS, JavaHost
from tests.conformance.transactions.scene import Scene, wait_for_transactions
from tests.conformance.under_test import UnderTest, running

TRANSACTION_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.cleaner.backoff.ms": "100",
}
BrokerOf = Callable[[int], UnderTest]


@pytest.fixture(scope="session")
def transaction_broker(against: str) -> Iterator[BrokerOf]:
    """`transaction_broker(1)`: one broker per transaction.version, started when it is first wanted."""
    started: dict[int, UnderTest] = {}
    with contextlib.ExitStack() as stack:

        def broker_of(version: int) -> UnderTest:
            if version not in started:
                broker = stack.enter_context(running(against, TRANSACTION_SETTINGS))
                wait_for_coordinator(broker.address)
                wait_for_transactions(broker.address)
                if version != NEWEST:
                    set_transaction_version(broker, version)
                started[version] = broker
            return started[version]

        yield broker_of
        HOSTS.close()


def set_transaction_version(broker: UnderTest, version: int) -> None:
    """Raise or lower the feature, as an operator does it."""
    host = HOSTS.of(JavaHost, broker.bootstrap)
    for how in ("UPGRADE", "SAFE_DOWNGRADE"):
        wish = {"feature": "transaction.version", "level": version, "how": how}
        with contextlib.suppress(ClientError):
            host.ask("set_feature", bootstrap=broker.bootstrap, **wish)
            return
    raise AssertionError(f"transaction.version cannot be {version}")


@pytest.fixture
def scene(request: pytest.FixtureRequest, transaction_broker: BrokerOf) -> Iterator[Scene]:
    kind: Kind = request.param
    with Scene(transaction_broker(kind.version), kind) as scene:
        yield scene
