from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conformance.under_test import running
from tests.integration.http.served import Cluster, Served

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker of ours with its dashboard, or Apache Kafka with one that was started for it."""
    against = request.config.getoption("--against")
    if against != "lowwater":
        with running(against, SETTINGS) as other:
            dashboard = Served("dashboard", "-b", other.bootstrap, "--port", "0")
            dashboard.bootstrap = other.bootstrap
            yield dashboard
            dashboard.close()
        return
    folder = tmp_path_factory.mktemp("broker")
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    broker = Served("broker", "--data-dir", str(folder), "--port", "0", "--http-port", "0", *settings)
    yield broker
    broker.close()


@pytest.fixture(scope="module")
def cluster(served: Served) -> Cluster:
    return Cluster(served.bootstrap)
