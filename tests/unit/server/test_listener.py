"""The listener's book-keeping on a loop that has no sockets and a clock that is moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lowwater.server.connection import Connection
from lowwater.server.listener import BUFFER_IDLE_MS, SWEEP_MS, Listener, ListenerLimits

NO_LIMIT = 2**31 - 1


class Handle:
    def __init__(self, at: float, callback: Callable[[], None]) -> None:
        self.at = at
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Server:
    class _Socket:
        @staticmethod
        def getsockname() -> tuple[str, int]:
            return "127.0.0.1", 4242

    sockets = (_Socket(),)
    closed = False

    def close(self) -> None:
        self.closed = True


class Loop:
    """As much of an event loop as a listener uses."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.handles: list[Handle] = []
        self.server = Server()
        self.accept: Callable[[], Connection]

    def time(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        callback()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Handle:
        self.handles.append(Handle(self.now_s + delay_s, callback))
        return self.handles[-1]

    async def create_server(self, accept: Callable[[], Connection], host: str, port: int, **_: Any) -> Server:
        self.accept = accept
        return self.server

    def advance(self, by_ms: float) -> None:
        end = self.now_s + by_ms / 1000
        while due := min((one for one in self.handles if one.at <= end), key=lambda one: one.at, default=None):
            self.handles.remove(due)
            self.now_s = due.at
            if due.callback is not None:
                due.callback()
        self.now_s = end


class Transport(asyncio.Transport):
    def __init__(self, host: str) -> None:
        super().__init__({"peername": (host, 1)})
        self.state = "open"
        self.unsent = 0
        self.protocol: Connection

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: Any) -> None:
        pass

    def close(self) -> None:
        """As real ones do it: not before everything is sent."""
        if self.state == "open":
            self.state = "closing"
            if not self.unsent:
                self.abort()

    def abort(self) -> None:
        if self.state != "closed":
            self.state = "closed"
            self.protocol.connection_lost(None)


class Scene:
    def __init__(self, **limits: int) -> None:
        chosen = {
            "frame_bytes_max": 1000,
            "unparsed_bytes_max": 1000,
            "write_bytes_high": 1000,
            "connections_max": NO_LIMIT,
            "connections_per_host_max": NO_LIMIT,
            "idle_ms_max": 600_000,
            **limits,
        }
        self.loop = Loop()
        self.listener = Listener(Answering(), ListenerLimits(**chosen))  # type: ignore[arg-type]

    async def _start(self) -> int:
        running = asyncio.get_running_loop
        asyncio.get_running_loop = lambda: self.loop  # type: ignore[assignment,return-value]
        try:
            return await self.listener.start("127.0.0.1", 0)
        finally:
            asyncio.get_running_loop = running

    def start(self) -> int:
        try:
            self._start().send(None)
        except StopIteration as stop:
            return int(stop.value)
        raise AssertionError("start waits for nothing here")

    def connect(self, host: str = "10.0.0.1") -> Transport:
        transport = Transport(host)
        transport.protocol = self.loop.accept()
        transport.protocol.connection_made(transport)
        return transport


class Answering:
    def dispatch(self, frame: memoryview, peer: object) -> list[bytes]:
        return [b"ok"]


def request(transport: Transport) -> None:
    data = b"\0\0\0\1x"
    transport.protocol.get_buffer(-1)[: len(data)] = data
    transport.protocol.buffer_updated(len(data))


def scene(**limits: int) -> Scene:
    made = Scene(**limits)
    assert made.start() == 4242
    return made


def test_connections_are_counted_until_they_end() -> None:
    here = scene()
    first, second = here.connect(), here.connect("10.0.0.2")
    assert here.listener.connection_count == 2
    first.close()
    second.close()
    assert here.listener.connection_count == 0


def test_connections_beyond_the_limit_are_refused_and_a_place_that_is_free_again_is_given() -> None:
    here = scene(connections_max=2)
    first, second, third = (here.connect(f"10.0.0.{n}") for n in range(3))
    assert [one.state for one in (first, second, third)] == ["open", "open", "closed"]
    first.close()
    assert here.connect().state == "open"
    assert here.listener.connection_count == 2


def test_one_address_cannot_take_more_than_its_share() -> None:
    here = scene(connections_per_host_max=2)
    crowd = [here.connect("10.0.0.1") for _ in range(4)]
    assert [one.state for one in crowd] == ["open", "open", "closed", "closed"]
    assert here.connect("10.0.0.2").state == "open"
    crowd[0].close()
    assert here.connect("10.0.0.1").state == "open"


def test_no_connection_is_allowed_where_the_limit_is_zero() -> None:
    assert scene(connections_max=0).connect().state == "closed"


@pytest.mark.parametrize("idle_ms", [200, 10_000, 600_000])
def test_an_idle_connection_is_ended_after_its_time_and_not_before(idle_ms: int) -> None:
    here = scene(idle_ms_max=idle_ms)
    quiet = here.connect()
    here.loop.advance(idle_ms)
    assert quiet.state == "open"
    here.loop.advance(idle_ms + 2 * SWEEP_MS)
    assert quiet.state == "closed"
    assert here.listener.connection_count == 0


def test_a_connection_in_use_is_not_ended() -> None:
    here = scene(idle_ms_max=1000)
    busy = here.connect()
    for _ in range(50):
        request(busy)
        here.loop.advance(500)
    assert busy.state == "open"


def test_an_idle_peer_that_never_reads_its_answers_is_ended_too() -> None:
    here = scene(idle_ms_max=1000)
    deaf = here.connect()
    request(deaf)
    deaf.unsent = 10_000
    here.loop.advance(5000)
    assert deaf.state == "closed"
    assert here.listener.connection_count == 0


def test_a_short_idle_connection_gives_back_its_receive_buffer() -> None:
    here = scene(frame_bytes_max=200_000)
    client = here.connect()
    large = (150_000).to_bytes(4, "big") + b"x" * 150_000
    while large:
        buffer = client.protocol.get_buffer(-1)
        count = min(len(buffer), len(large))
        buffer[:count] = large[:count]
        client.protocol.buffer_updated(count)
        large = large[count:]
    assert client.protocol._frame
    here.loop.advance(BUFFER_IDLE_MS + 2 * SWEEP_MS)
    assert not client.protocol._frame
    assert client.state == "open"


def test_closing_ends_the_socket_the_sweep_and_every_connection() -> None:
    here = scene()
    clients = [here.connect() for _ in range(3)]
    with pytest.raises(StopIteration):
        here.listener.close().send(None)
    assert here.loop.server.closed
    assert {one.state for one in clients} == {"closed"}
    assert all(handle.callback is None for handle in here.loop.handles)
