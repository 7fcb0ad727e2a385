"""Runs flows on an asyncio event loop, the standard one or uvloop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar, cast

from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Receiver
from lowwater.client.errors import ClientError, ClosedError, RequestTimeoutError
from lowwater.client.flow import Flow
from lowwater.client.tls import connect_failure, connection_failure, tls_context
from lowwater.pending import Pending
from lowwater.ports import Ids, Timer
from lowwater.system import SystemIds
from lowwater.types import Buffer

T = TypeVar("T")

_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}


class AioDriver:
    """Made and used within one running loop."""

    def __init__(self, config: ClientConfig, ids: Ids | None = None) -> None:
        self._config = config
        self._tls = tls_context(config)
        self._ids = ids or SystemIds()
        self._loop = asyncio.get_running_loop()
        self._wires: set[AioWire] = set()
        self._is_closed = False

    # ---- for whoever calls

    async def run(self, coroutine: Coroutine[Any, Any, T], timeout_ms: float | None = None) -> T:
        """The coroutine's result. When the time is over, or the task is cancelled, it is cancelled too."""
        if self._is_closed:
            coroutine.close()
            raise ClosedError("the client was closed")
        flow = Flow(coroutine)
        try:
            if not await self.wait(flow, timeout_ms):
                raise RequestTimeoutError(f"the call was not done within {(timeout_ms or 0) / 1000:g} s")
        finally:
            flow.cancel()
        return flow.result()

    async def wait(self, pending: Pending[Any], timeout_ms: float | None = None) -> bool:
        """True once it is settled, false when the time is over before; it goes on then."""
        if pending.done:
            return True
        settled = self._loop.create_future()
        pending.on_done(lambda _: None if settled.done() else settled.set_result(None))
        await asyncio.wait([settled], timeout=None if timeout_ms is None else timeout_ms / 1000)
        settled.cancel()
        return pending.done

    async def close(self) -> None:
        """Returns when every socket is closed. Connections belong to the network, which is closed first."""
        self._is_closed = True
        for wire in list(self._wires):
            wire.abort()
        while self._wires:
            await asyncio.gather(*(wire.over for wire in list(self._wires)), return_exceptions=True)

    @property
    def open_sockets(self) -> int:
        """Of connections, open, being opened or being closed."""
        return len(self._wires)

    # ---- the Driver

    @property
    def ids(self) -> Ids:
        return self._ids

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return self._loop.time() * 1000

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def dial(self, address: Address, receiver: Receiver) -> AioWire:
        wire = AioWire(self._loop, address, receiver)
        self._wires.add(wire)
        wire.over.add_done_callback(lambda _: self._wires.discard(wire))
        wire.opening = self._loop.create_task(self._open(wire))
        wire.opening.add_done_callback(lambda _: wire.opened())
        return wire

    async def _open(self, wire: AioWire) -> None:
        address = wire.address
        try:
            transport, _ = await self._loop.create_connection(
                lambda: wire,
                address.host,
                address.port,
                ssl=self._tls,
                server_hostname=address.host if self._tls is not None else None,
                family=_FAMILIES[self._config.str("broker.address.family")],
            )
        except Exception as error:
            wire.lose(connect_failure(error, address))
        else:
            with contextlib.suppress(OSError, AttributeError):
                self._tune(transport.get_extra_info("socket"))

    def _tune(self, sock: Any) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, self._config.bool("socket.keepalive.enable"))
        for name, option in (("send", socket.SO_SNDBUF), ("receive", socket.SO_RCVBUF)):
            size = self._config.int(f"socket.{name}.buffer.bytes")
            if size > 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def elsewhere(self, work: Callable[[], T]) -> Pending[T]:
        """In a thread."""
        outcome: Pending[T] = Pending()
        future = self._loop.run_in_executor(None, work)

        def settled(done: asyncio.Future[T]) -> None:
            if done.cancelled():
                outcome.fail(ClosedError("the client was closed"))
            elif (error := done.exception()) is not None:
                outcome.fail(error)
            else:
                outcome.resolve(done.result())

        future.add_done_callback(settled)
        return outcome


class AioWire(asyncio.BufferedProtocol):
    """One connection: a Transport to the client, a protocol to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, address: Address, receiver: Receiver) -> None:
        self.address = address
        self.opening: asyncio.Task[None] | None = None
        self.over: asyncio.Future[None] = loop.create_future()
        self._receiver: Receiver | None = receiver
        self._transport: asyncio.Transport | None = None

    def opened(self) -> None:
        """Opening is over; without a connection, so is this."""
        if self._transport is None:
            self._gone()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        if self._receiver is None:
            self._transport.abort()
        else:
            self._receiver.connected()

    def get_buffer(self, _: int) -> memoryview:
        return memoryview(bytearray(1024)) if self._receiver is None else self._receiver.room()

    def buffer_updated(self, count: int) -> None:
        if self._receiver is not None:
            self._receiver.received(count)

    def connection_lost(self, error: Exception | None) -> None:
        self.lose(connection_failure(error, self.address))
        self._gone()

    def lose(self, error: ClientError) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.lost(error)

    def _gone(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def write(self, parts: Sequence[Buffer]) -> None:
        if self._transport is not None:
            self._transport.writelines(parts)

    def abort(self) -> None:
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()
