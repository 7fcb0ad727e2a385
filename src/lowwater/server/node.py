"""A broker and its listener, started and stopped together on the running event loop."""

from __future__ import annotations

import asyncio
import logging

from lowwater.broker.broker import Broker, Endpoint, Surroundings
from lowwater.broker.router import Router
from lowwater.config import BrokerConfig
from lowwater.ports import Clock, Disk, Ids
from lowwater.server.listener import Listener, ListenerLimits
from lowwater.server.loop import LoopScheduler, ThreadOffload
from lowwater.system import SystemClock, SystemDisk, SystemIds

logger = logging.getLogger(__name__)


class Node:
    """`start` returns when connections are accepted, `stop` when everything is on disk."""

    def __init__(
        self,
        config: BrokerConfig,
        data_dir: str,
        *,
        disk: Disk | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.scheduler = LoopScheduler(loop)
        self._offload = ThreadOffload(loop)
        surroundings = Surroundings(
            disk or SystemDisk(), clock or SystemClock(), ids or SystemIds(), self.scheduler, self._offload
        )
        self.broker = Broker(config, data_dir, surroundings)
        self.router = Router(self.broker)
        self._listener = Listener(self.router, _limits(config))
        self.endpoint = Endpoint("", 0)

    async def start(self, host: str, port: int) -> None:
        self.broker.open()
        try:
            bound = await self._listener.start(host, port)
        except OSError:
            self.broker.close()
            raise
        self.endpoint = Endpoint(host, bound)
        self.broker.advertised = advertised(self.broker.config, self.endpoint)

    async def stop(self) -> None:
        """Answer nobody any more, then flush and leave the clean marker."""
        await self._listener.close()
        await self._settle()
        self.broker.close()
        self._offload.close()

    async def abandon(self) -> None:
        """End like a killed process: nothing is flushed, no clean marker is written."""
        await self._listener.close()
        await self._settle()
        self._offload.close()
        self.broker.abandon()

    async def _settle(self) -> None:
        """Wait for fsyncs under way: their files must not be closed under them."""
        while self.broker.commits.busy:
            await asyncio.sleep(0.001)
