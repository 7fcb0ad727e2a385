"""What one connection may make the broker hold: replies, frames, and time."""

from __future__ import annotations

import struct

import pytest
from tests.unit.server.test_connection import EchoRouter, Harness, Transport, frame

from lowwater.broker.router import Waits
from lowwater.server.connection import FRAME_BYTES_KEPT, Connection

HIGH = 1 << 20  # write_bytes_high of the harness
REPLY = 100_000


class SlowPeer(Transport):
    """Takes nothing: what is written piles up, and above the mark the connection is told to pause."""

    def __init__(self) -> None:
        super().__init__()
        self.connection: Connection | None = None
        self.unsent = 0
        self.aborted = False

    def write(self, data: bytes) -> None:
        super().write(data)
        self._pile_up(len(data))

    def writelines(self, parts: list[bytes]) -> None:
        super().writelines(parts)
        self._pile_up(sum(map(len, parts)))

    def _pile_up(self, size: int) -> None:
        self.unsent += size
        if self.unsent > HIGH and self.connection is not None:
            self.connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.aborted = True


class GenerousRouter(EchoRouter):
    """A few bytes ask for many: `M` is answered with a large reply; the others as EchoRouter does."""

    def dispatch(self, frame, peer):  # type: ignore[no-untyped-def]
        answer = super().dispatch(frame, peer)
        return answer if isinstance(answer, Waits) or bytes(frame) != b"M" else [b"m" * REPLY]


@pytest.fixture
def at() -> Harness:
    harness = Harness()
    harness.router = GenerousRouter()
    harness.transport = SlowPeer()
    # As large as the real one, so that many small requests come with one read.
    harness.connection = Connection(harness.listener, harness.router, memoryview(bytearray(1 << 17)))
    harness.transport.connection = harness.connection
    harness.connection.connection_made(harness.transport)
    return harness


def test_small_requests_with_large_answers_stop_being_served_when_the_peer_does_not_read(at: Harness) -> None:
    at.receive(frame(b"M") * 1000)
    assert len(at.sent()) <= 2 * HIGH + REPLY
    assert len(at.router.frames) < 50


def test_answers_that_wait_behind_a_pending_one_are_bounded_in_bytes(at: Harness) -> None:
    at.receive(frame(b"D1") + frame(b"M") * 1000)
    assert len(at.router.frames) <= HIGH // REPLY + 2
    assert at.sent() == b""


def test_requests_that_had_to_wait_are_all_served_in_the_end(at: Harness) -> None:
    at.receive(frame(b"D1") + frame(b"M") * 100)
    at.router.waiting[b"D1"].resolve([b"one"])
    for _ in range(100):
        at.listener.turn()
        at.transport.unsent = 0
        at.connection.resume_writing()
    assert at.sent() == b"one" + b"m" * (100 * REPLY)


def test_a_large_frame_does_not_leave_its_buffer_behind(at: Harness) -> None:
    at.connection._frame_bytes_max = 4 * FRAME_BYTES_KEPT
    at.receive(frame(b"q" * (2 * FRAME_BYTES_KEPT)))
    assert len(at.router.frames[-1]) == 2 * FRAME_BYTES_KEPT
    assert len(at.connection._frame) == 0


def test_a_frame_that_trickles_in_is_no_activity(at: Harness) -> None:
    at.connection.take_activity()
    at.receive(struct.pack(">i", 100) + b"a")
    at.receive(b"b")
    assert not at.connection.take_activity()
    at.receive(b"c" * 98)
    assert at.connection.take_activity()


def test_a_peer_that_reads_slowly_is_active_while_it_does(at: Harness) -> None:
    at.receive(frame(b"M"))
    assert at.connection.take_activity()
    assert not at.connection.take_activity()
    at.transport.unsent -= 1
    assert at.connection.take_activity()
    assert not at.connection.take_activity()
