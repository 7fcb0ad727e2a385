"""Both drivers behind one face, so that every test runs with each."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from lowwater.client.aio import AioDriver
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.network import Network

T = TypeVar("T")
Work = Callable[[Cluster], Coroutine[Any, Any, T]]

LIMIT_MS = 30_000


def blocking(settings: dict[str, Any], *works: Work[Any]) -> list[Any]:
    config = ClientConfig(settings)
    driver = BlockingDriver(config)
    network = Network(config, driver)
    cluster = Cluster(network)
    try:
        return [driver.run(work(cluster), LIMIT_MS) for work in works]
    finally:
        network.close()
        assert driver.open_sockets == 0
        driver.close()


def aio(settings: dict[str, Any], *works: Work[Any]) -> list[Any]:
    async def main() -> list[Any]:
        config = ClientConfig(settings)
        driver = AioDriver(config)
        network = Network(config, driver)
        cluster = Cluster(network)
        try:
            return [await driver.run(work(cluster), LIMIT_MS) for work in works]
        finally:
            network.close()
            await driver.close()
            assert driver.open_sockets == 0

    return asyncio.run(main())


def uvloop(settings: dict[str, Any], *works: Work[Any]) -> list[Any]:
    import uvloop as package

    previous = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(package.EventLoopPolicy())
    try:
        return aio(settings, *works)
    finally:
        asyncio.set_event_loop_policy(previous)


DRIVERS: list[Callable[..., list[Any]]] = [blocking, aio, uvloop]


def come_down_to(count: int) -> bool:
    """Whether this process has no more sockets than that, once the broker in it has noticed who is gone."""
    deadline = time.monotonic() + 10
    while open_sockets() > count and time.monotonic() < deadline:
        time.sleep(0.005)
    return open_sockets() <= count


def open_sockets() -> int:
    """Of this whole process."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:
            continue
    return sum(link.startswith("socket:") for link in links)
