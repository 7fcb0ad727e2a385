"""The connection on its own: a scripted router above it, a recording transport below it."""

import asyncio
import struct

import pytest

from lowwater.broker.metrics import Traffic
from lowwater.broker.router import Waits
from lowwater.errors import WireError
from lowwater.server.connection import PENDING_REPLIES_MAX, Connection

FRAME_MAX = 1 << 20
UNPARSED_MAX = 1 << 16


class Transport(asyncio.Transport):
    def __init__(self):
        super().__init__({"peername": ("10.0.0.7", 4242)})
        self.writes = []
        self.closed = False
        self.reading = True

    def write(self, data):
        self.writes.append(bytes(data))

    def writelines(self, parts):
        self.writes.append(b"".join(bytes(part) for part in parts))

    def close(self):
        self.closed = True

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True

    def set_write_buffer_limits(self, high=None, low=None):
        pass


class FakeListener:
    name = "PLAINTEXT"
    frame_bytes_max = FRAME_MAX
    unparsed_bytes_max = UNPARSED_MAX
    write_bytes_high = 1 << 20

    def __init__(self):
        self.due = []
        self.gone = []
        self.traffic = Traffic()

    def now_ms(self):
        return 0.0

    def call_soon(self, callback):
        self.due.append(callback)

    def connected(self, connection):
        pass

    def disconnected(self, connection):
        self.gone.append(connection)

    def turn(self):
        """Run what was scheduled, as the loop would in its next turn."""
        due, self.due = self.due, []
        for callback in due:
            callback()


class EchoRouter:
    """Answers a frame with itself; `P…` waits and parks, `D…` waits and pipelines, `X` breaks, `N` has no reply."""

    def __init__(self):
        self.frames = []
        self.waiting = {}

    def dispatch(self, frame, peer):
        text = bytes(frame)
        self.frames.append(text)
        if text.startswith(b"X"):
            raise WireError("broken")
        if text.startswith(b"N"):
            return None
        if text[:1] in (b"P", b"D"):
            self.waiting[text] = Waits(pipelines=text.startswith(b"D"))
            return self.waiting[text]
        return [text]


class Harness:
    def __init__(self):
        self.listener, self.router, self.transport = FakeListener(), EchoRouter(), Transport()
        self.connection = Connection(self.listener, self.router, memoryview(bytearray(4096)))
        self.connection.connection_made(self.transport)

    def receive(self, data):
        """Deliver bytes as a socket would: never more than the buffer that was offered."""
        while data:
            buffer = self.connection.get_buffer(-1)
            count = min(len(buffer), len(data))
            buffer[:count] = data[:count]
            self.connection.buffer_updated(count)
            data = data[count:]

    def sent(self):
        return b"".join(self.transport.writes)


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


@pytest.fixture
def at():
    return Harness()


def test_frames_of_one_read_are_answered_in_one_write(at):
    at.receive(frame(b"a") + frame(b"bb") + frame(b"ccc"))
    assert at.transport.writes == [b"abbccc"]


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 4095, 4096])
def test_frames_arrive_whole_however_they_are_cut(at, step):
    payloads = [b"a", b"b" * 10, b"", b"c" * 5000, b"d" * 100_000, b"e"]
    data = b"".join(map(frame, payloads))
    for start in range(0, len(data), step):
        at.receive(data[start : start + step])
    assert at.router.frames == payloads


def test_an_unfinished_frame_holds_no_more_than_twice_what_arrived(at):
    at.receive(struct.pack(">i", FRAME_MAX) + b"x" * 10_000)
    assert len(at.connection._frame) <= 2 * 10_004


@pytest.mark.parametrize("size", [-1, FRAME_MAX + 1, 2**31 - 1, -(2**31)])
def test_an_impossible_length_closes_the_connection(at, size):
    at.receive(struct.pack(">i", size))
    assert at.transport.closed
    assert at.router.frames == []


def test_a_broken_request_closes_the_connection_and_keeps_the_replies_before_it(at):
    at.receive(frame(b"a") + frame(b"X") + frame(b"b"))
    assert at.transport.closed
    assert at.sent() == b"a"
    assert b"b" not in at.router.frames


def test_a_parked_request_holds_back_what_follows(at):
    at.receive(frame(b"P1") + frame(b"after"))
    assert at.router.frames == [b"P1"]
    at.router.waiting[b"P1"].resolve([b"parked"])
    at.listener.turn()
    assert at.sent() == b"parkedafter"


def test_what_arrives_behind_a_parked_request_is_bounded(at):
    at.receive(frame(b"P1"))
    at.receive(frame(b"y" * (UNPARSED_MAX + 1)))
    assert not at.transport.reading
    at.router.waiting[b"P1"].resolve([b"parked"])
    at.listener.turn()
    assert at.transport.reading
    assert at.sent() == b"parked" + b"y" * (UNPARSED_MAX + 1)


def test_a_pipelining_request_lets_later_ones_pass_but_replies_keep_their_order(at):
    at.receive(frame(b"D1") + frame(b"a") + frame(b"D2") + frame(b"b"))
    assert at.router.frames == [b"D1", b"a", b"D2", b"b"]
    assert at.sent() == b""
    at.router.waiting[b"D2"].resolve([b"two"])
    at.listener.turn()
    assert at.sent() == b""
    at.router.waiting[b"D1"].resolve([b"one"])
    at.listener.turn()
    assert at.sent() == b"oneatwob"


def test_pending_replies_are_bounded(at):
    for number in range(PENDING_REPLIES_MAX + 5):
        at.receive(frame(b"D%d" % number))
    assert len(at.router.frames) == PENDING_REPLIES_MAX
    for number in range(PENDING_REPLIES_MAX):
        at.router.waiting[b"D%d" % number].resolve([b"."])
    at.listener.turn()
    assert len(at.router.frames) == PENDING_REPLIES_MAX + 5


def test_a_peer_that_does_not_read_is_served_nothing_more(at):
    at.connection.pause_writing()
    at.receive(frame(b"a"))
    assert at.router.frames == []
    at.connection.resume_writing()
    assert at.sent() == b"a"


def test_a_large_frame_that_ends_while_the_peer_does_not_read_waits(at):
    data = frame(b"z" * 20_000)
    at.receive(data[:10_000])
    at.connection.pause_writing()
    at.receive(data[10_000:])
    assert at.router.frames == []
    assert not at.transport.reading
    at.connection.resume_writing()
    assert at.router.frames == [b"z" * 20_000]
    assert at.transport.reading


def test_a_request_without_reply_writes_nothing(at):
    at.receive(frame(b"N") + frame(b"a"))
    assert at.transport.writes == [b"a"]


def test_a_pending_request_without_reply_keeps_the_others_in_order(at):
    at.receive(frame(b"D1") + frame(b"a"))
    at.router.waiting[b"D1"].resolve(None)
    at.listener.turn()
    assert at.sent() == b"a"


def test_a_lost_connection_abandons_what_was_parked(at):
    at.receive(frame(b"P1"))
    gone = []
    at.router.waiting[b"P1"].on_abandon = lambda: gone.append(True)
    at.connection.connection_lost(None)
    assert gone == [True]
    assert at.listener.gone == [at.connection]


def test_an_answer_after_the_connection_was_lost_is_dropped(at):
    at.receive(frame(b"P1"))
    at.connection.connection_lost(None)
    at.router.waiting[b"P1"].resolve([b"late"])
    at.listener.turn()
    assert at.sent() == b""


def test_a_failed_answer_closes_the_connection(at):
    at.receive(frame(b"P1"))
    at.router.waiting[b"P1"].fail(RuntimeError("bug"))
    assert at.transport.closed


def test_an_idle_connection_gives_its_buffer_back(at):
    at.receive(frame(b"q" * 50_000))
    assert at.connection._frame
    at.connection.release_buffers()
    assert not at.connection._frame
    at.receive(frame(b"r" * 50_000))
    assert at.router.frames[-1] == b"r" * 50_000
