"""The client of a query's driver side: made at the first call, in the one process that plans the query."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.network import Network
from lowwater.client.threaded import ThreadedDriver
from lowwater.pending import Pending

T = TypeVar("T")


class DriverClient:
    """Connections with a thread of their own, for all that a query asks while it plans. May be used by any thread."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        config = ClientConfig(settings)
        self._driver = ThreadedDriver(config)
        self.cluster = Cluster(Network(config, self._driver))

    def run(self, flow: Coroutine[Any, Any, T], timeout_ms: float | None = None) -> T:
        """The flow's result; when the time is over it is given up."""
        return self._driver.run(flow, timeout_ms)

    def wait(self, pending: Pending[Any], timeout_ms: float | None = None) -> bool:
        """Whether it is settled in time; it goes on in any case."""
        return self._driver.wait(pending, timeout_ms)

    def now_ms(self) -> int:
        return self._driver.now_ms()

    def close(self) -> None:
        try:
            self._driver.run(self._hang_up())
        finally:
            self._driver.close()

    async def _hang_up(self) -> None:
        self.cluster.network.close()
