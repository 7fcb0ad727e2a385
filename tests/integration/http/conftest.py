from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.http.served import Cluster, Served


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A broker with its dashboard."""
    folder = tmp_path_factory.mktemp("broker")
    broker = Served(
        "broker",
        "--data-dir",
        str(folder),
        "--port",
        "0",
        "--http-port",
        "0",
        "--set",
        "group.initial.rebalance.delay.ms=0",
    )
    yield broker
    broker.close()


@pytest.fixture(scope="module")
def cluster(served: Served) -> Cluster:
    return Cluster(served.bootstrap)
