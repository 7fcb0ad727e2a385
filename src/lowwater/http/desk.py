"""What the operations work with: the cluster, the watch over its groups, and the broker beside us, if there is one."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from lowwater.client.admin.aio import AsyncAdmin
from lowwater.client.admin.opening import config_of
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.http.events import Events
from lowwater.http.watching import Look, Watch, summary
from lowwater.lag.collecting import Observer
from lowwater.types import TopicPartition

if TYPE_CHECKING:
    from lowwater.http.serving import Settings

T = TypeVar("T")

# So long a part of the cluster that does not answer holds up an answer, unless the settings say otherwise; and a topic
# that is not there is not waited for: whoever looks can look again.
DEFAULTS = {
    "default.api.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "3000",
    "topic.metadata.propagation.max.ms": "200",
    "client.id": "lowwater-http",
}
COUNTERS_AGE_S = 1.0
COUNTERS_BYTES_MAX = 64 * 1024 * 1024


class Desk:
    """Opened and closed with the server, on its loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._config = {**DEFAULTS, **settings.client}
        self.events = Events()
        self.on_broker_gone: Callable[[], None] = lambda: None
        self.admin: AsyncAdmin
        self.watch: Watch
        self._observer: Observer
        self._counters: _Counters | None = None

    async def open(self) -> None:
        self.admin = AsyncAdmin(None, self._config)
        self.watch = Watch(
            config_of(None, self._config),
            interval_ms=self._settings.interval_ms,
            allowed=self._settings.lag_allowed,
            on_look=self._looked,
        )
        self.watch.start()
        # What was committed when is the watch's to find out.
        self._observer = Observer(self.cluster, reads_commits=False)
        if self._settings.counters is not None:
            self._counters = await _Counters.open(self._settings.counters, lambda: self.on_broker_gone())

    async def close(self) -> None:
        await self.watch.close()
        await self.admin.close()

    def _looked(self, look: Look) -> None:
        self.events.publish("sample", summary(look))

    @property
    def cluster(self) -> Cluster:
        return self.admin._cluster

    async def run(self, flow: Coroutine[Any, Any, T]) -> T:
        return await self.admin._run(flow)

    async def look_at(self, group: str) -> Look:
        """One group as it is now."""
        return self.watch.judge(await self.run(self._observer.observe([group])))

    async def committed(self, group: str, one: TopicPartition) -> int | None:
        found = await self.run(Coordinator(self.cluster, group).committed(frozenset({one})))
        return found.get(one)

    async def counters(self) -> dict[str, Any] | None:
        """What the broker beside us counts; None when there is none, or it is gone."""
        return None if self._counters is None else await self._counters.ask()


class _Counters:
    """One question at a time: a line over, a line back. The end of the broker is seen without asking."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gone: Callable[[], None]) -> None:
        self._reader = reader
        self._writer = writer
        self._gone = gone
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[bytes] | None = None
        self._is_gone = False
        self._told: dict[str, Any] | None = None
        self._told_s = -COUNTERS_AGE_S
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, sock: socket.socket, gone: Callable[[], None]) -> _Counters:
        reader, writer = await asyncio.open_connection(sock=sock, limit=COUNTERS_BYTES_MAX)
        return cls(reader, writer, gone)

    async def ask(self) -> dict[str, Any] | None:
        """A second old at most: it is the broker's own loop that counts."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            if self._is_gone:
                return None
            if loop.time() - self._told_s < COUNTERS_AGE_S:
                return self._told
            self._answer = asyncio.get_running_loop().create_future()
            self._writer.write(b"?\n")
            line = await self._answer
            self._told, self._told_s = (json.loads(line) if line else None), loop.time()
            return self._told

    async def _listen(self) -> None:
        line = b"first"
        while line:
            try:
                line = await self._reader.readline()
            except (OSError, ValueError):
                line = b""
            self._is_gone = not line
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(line)
        self._gone()
