"""A broker and its listener, started and stopped together on the running event loop."""

from __future__ import annotations

import asyncio
import logging
import resource
from typing import Any

from lowwater.broker.broker import Broker, Endpoint, Surroundings
from lowwater.broker.metrics import describe
from lowwater.broker.router import Router
from lowwater.config import BrokerConfig, client_listener
from lowwater.config.setting import LONG_MAX
from lowwater.log.files import FILES_MAX
from lowwater.ports import Clock, Disk, Ids
from lowwater.server.listener import Listener, ListenerLimits
from lowwater.server.loop import LoopScheduler, PoolOffload
from lowwater.system import SystemClock, SystemDisk, SystemIds

logger = logging.getLogger(__name__)

# For the event loop, the lock, the journals, and the pipes of a worker process.
HANDLES_RESERVED = 64
FILES_USUAL = 512
HANDLES_UNLIMITED = 1 << 20


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
        worker_processes: bool = False,
    ) -> None:
        loop = asyncio.get_running_loop()
        self.scheduler = LoopScheduler(loop)
        self._offload = PoolOffload(loop, processes=worker_processes)
        files_max, connections_possible = share_handles(_handle_limit())
        surroundings = Surroundings(
            disk=disk or SystemDisk(),
            clock=clock or SystemClock(),
            ids=ids or SystemIds(),
            scheduler=self.scheduler,
            offload=self._offload,
            files_max=files_max,
        )
        self.broker = Broker(config, data_dir, surroundings)
        self.router = Router(self.broker)
        self._listener = Listener(self.router, _limits(config, connections_possible))
        self.endpoint = Endpoint("", 0)

    async def start(self, host: str, port: int) -> None:
        """Recover, then listen. OSError when the address cannot be had, StorageError when the directory cannot."""
        self.broker.open()
        try:
            bound = await self._listener.start(host, port)
        except OSError:
            self.broker.close()
            self._offload.close()
            raise
        self.endpoint = Endpoint(host, bound)
        self.broker.advertised = advertised(self.broker.config, self.endpoint)

    def metrics(self) -> dict[str, Any]:
        """Everything this node counts, as JSON."""
        traffic = self._listener.traffic
        return {
            "requests": self.router.requests_by_api(),
            "took": {name: took.as_json() for name, took in self.router.took_by_api().items()},
            "connections": self._listener.connection_count,
            "traffic": {name: getattr(traffic, name) for name in traffic.__slots__},
            **describe(self.broker),
        }

    async def stop(self) -> None:
        """Answer nobody any more, then flush and leave the clean marker."""
        await self._quiesce()
        self.broker.close()

    async def abandon(self) -> None:
        """End like a killed process: nothing is flushed, no clean marker is written."""
        await self._quiesce()
        self.broker.abandon()

    async def _quiesce(self) -> None:
        await self._listener.close()
        self.broker.stop_housekeeping()
        # A compaction may have minutes to go; it is begun anew after the next start.
        self._offload.interrupt_heavy()
        # Work under way holds files that must not be closed under it; its callbacks need turns of this loop.
        await self._offload.drained()
        self._offload.close()


def listen_address(config: BrokerConfig) -> Endpoint:
    """Where `listeners` says to listen."""
    address = client_listener(config.list("listeners"))
    return Endpoint(address.host or "0.0.0.0", address.port)


def advertised(config: BrokerConfig, listening: Endpoint) -> Endpoint:
    """What clients are told to connect to: `advertised.listeners`, or where we listen."""
    told = config.list("advertised.listeners")
    if told:
        address = client_listener(told)
        return Endpoint(address.host or listening.host, address.port or listening.port)
    host = "127.0.0.1" if listening.host in ("", "0.0.0.0") else "::1" if listening.host == "::" else listening.host
    return Endpoint(host, listening.port)


def _limits(config: BrokerConfig, connections_possible: int) -> ListenerLimits:
    idle_ms = config.int("connections.max.idle.ms")
    return ListenerLimits(
        frame_bytes_max=config.int("socket.request.max.bytes"),
        unparsed_bytes_max=config.int("connection.queued.max.bytes"),
        write_bytes_high=config.int("connection.write.buffer.bytes"),
        connections_max=min(config.int("max.connections"), connections_possible),
        connections_per_host_max=config.int("max.connections.per.ip"),
        idle_ms_max=idle_ms if idle_ms >= 0 else LONG_MAX,
    )


def share_handles(limit: int) -> tuple[int, int]:
    """(for log files, for connections): a full house must be able to write, and most handles are for its guests."""
    reserved = min(HANDLES_RESERVED, limit // 4)
    files = min(FILES_MAX, (limit - reserved) // 2, max(FILES_USUAL, (limit - reserved) // 16))
    return files, limit - reserved - files


def _handle_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HANDLES_UNLIMITED if soft == resource.RLIM_INFINITY else soft
