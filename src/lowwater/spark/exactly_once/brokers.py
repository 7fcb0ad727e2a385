"""What the protocol asks of brokers, asked of a cluster."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence

from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError
from lowwater.client.network import Network
from lowwater.spark.exactly_once.fencing import Levels, abort_all, end_all, open_transactions, take
from lowwater.spark.exactly_once.ids import left_over
from lowwater.spark.exactly_once.ledger import Ledger
from lowwater.spark.exactly_once.state import Fence, SinkState, Transaction

OWN_TIMEOUT_MS = 60_000
"""Of the sink's own transactions, which write one record."""
_log = logging.getLogger("lowwater.spark")


class ClusterBrokers:
    """For one thread. Every call takes at most default.api.timeout.ms."""

    def __init__(self, cluster: Cluster, driver: BlockingDriver, sink: str, ledger: str) -> None:
        self._cluster = cluster
        self._run = driver.run
        self._sink = sink
        self._levels = Levels(cluster)
        self._ledger = Ledger(cluster, ledger, sink)
        self._fence: Fence | None = None

    def take(self, expected: Fence | None) -> Fence:
        self._fence = fence = self._run(take(self._cluster, self._sink, expected, OWN_TIMEOUT_MS))
        return fence

    def state(self) -> SinkState:
        return self._run(self._ledger.read())

    def record(self, state: SinkState) -> Fence:
        assert self._fence is not None, "a sink is taken before anything is recorded"
        self._fence = fence = self._run(self._ledger.write(self._fence, self._levels, state))
        return fence

    def end(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Transaction]:
        return self._run(end_all(self._cluster, self._levels, transactions, commit=commit))

    def abort_left_over(self, state: SinkState, keep: Collection[str]) -> None:
        """What cannot be found or aborted ends by its timeout: that is told, and stops nobody."""
        try:
            found = self._run(open_transactions(self._cluster))
        except ClientError as error:
            _log.warning("sink %s: transactions of dead tasks are left to their timeout: %s", self._sink, error)
            return
        dead = left_over(self._sink, state, found, keep)
        for each, why in self._run(abort_all(self._cluster, dead, OWN_TIMEOUT_MS)).items():
            _log.warning("sink %s: transaction %s of a dead task is left to its timeout: %s", self._sink, each, why)


@contextlib.contextmanager
def brokers_of(settings: Mapping[str, str], sink: str, ledger: str) -> Iterator[ClusterBrokers]:
    """Connections for a few requests."""
    config = ClientConfig({**settings, "allow.auto.create.topics": False})
    driver = BlockingDriver(config)
    network = Network(config, driver)
    try:
        yield ClusterBrokers(Cluster(network), driver, sink, ledger)
    finally:
        network.close()
        driver.close()
