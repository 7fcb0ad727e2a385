"""Suite 8 for the listener: ten thousand connections, peers that stall in every way, and the limits against them."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import shutil
import socket
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.raw import ConnectionEndedError, Wire
from tests.crash.broker_process import BrokerProcess
from tests.crash.plain_client import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    connect,
    create_topic,
    fetch_request,
    produce,
    produce_request,
    read_all,
)
from tests.sim.batches import decode_all

from lowwater.wire.frame import decode_response_header, encode_request_header
from lowwater.wire.messages import API, ApiVersionsRequest, FetchRequest, FetchResponse
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.schema import decoder, encoder

WANTED_CONNECTIONS = 10_000
HANDLES_BESIDE = 1_000
MIB = 1 << 20
FRAME_MAX = 100 * MIB
DATA_BYTES_MAX = 512 * MIB
DEADLINE_S = 60

needs_prlimit = pytest.mark.skipif(shutil.which("prlimit") is None, reason="prlimit is not here")


@contextlib.contextmanager
def running(data_dir: Path, prefix: tuple[str, ...] = (), **settings: str) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(data_dir, {name.replace("_", "."): value for name, value in settings.items()})
    broker.start(prefix=prefix)
    try:
        yield broker
    finally:
        if broker.is_running():
            broker.kill()


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def own_memory(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon"))


def handles(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def frame_of(request: object, version: int, correlation_id: int = 1) -> bytes:
    key = next(api.key for api in API.values() if api.request is type(request))
    body = encode_request_header(key, version, correlation_id, "crowd") + encoder(type(request), version)(request)
    return struct.pack(">i", len(body)) + body


# -- ten thousand


class Crowd:
    """Many plain connections; `answers` waits until each of them got one whole answer."""

    def __init__(self, port: int, count: int) -> None:
        self.sockets = [socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) for _ in range(count)]

    def send(self, frame: bytes) -> None:
        for one in self.sockets:
            one.sendall(frame)

    def answers(self) -> list[bytes]:
        received = {one: bytearray() for one in self.sockets}
        with selectors.DefaultSelector() as selector:
            for one in self.sockets:
                selector.register(one, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(DEADLINE_S)
                assert ready, f"{len(selector.get_map())} connections are left without an answer"
                for key, _ in ready:
                    self._take(key.fileobj, received, selector)  # type: ignore[arg-type]
        return [bytes(answer) for answer in received.values()]

    @staticmethod
    def _take(one: socket.socket, received: dict[socket.socket, bytearray], selector: selectors.BaseSelector) -> None:
        piece = one.recv(1 << 16)
        assert piece, "a connection of the crowd was closed"
        answer = received[one]
        answer += piece
        if len(answer) >= 4 and len(answer) - 4 >= struct.unpack_from(">i", answer)[0]:
            selector.unregister(one)

    def leave(self) -> None:
        for one in self.sockets:
            one.close()


@contextlib.contextmanager
def many_handles() -> Iterator[int]:
    """Raise this process' limit as far as it may; how many connections that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_CONNECTIONS + HANDLES_BESIDE
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    try:
        yield allowed - HANDLES_BESIDE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_prlimit
def test_ten_thousand_connections_are_served_and_let_go(tmp_path: Path) -> None:
    with many_handles() as count:
        if count < 1000:
            pytest.skip(f"the hard limit of file handles allows only {count} connections")
        limit = f"--nofile={count + HANDLES_BESIDE}"
        with running(tmp_path / "data", ("prlimit", limit, "--")) as broker, connect(broker.bootstrap) as good:
            create_topic(good, "orders")
            before, handles_before = own_memory(broker.pid), handles(broker.pid)
            crowd = Crowd(broker.port, count)
            crowd.send(frame_of(ApiVersionsRequest(), 0))
            assert len(set(crowd.answers())) == 1
            per_connection = (own_memory(broker.pid) - before) / count
            crowd.send(frame_of(parked_fetch("orders", 0), FETCH_VERSION, 7))
            took_ms = [timed_produce(good, b"%d" % number) for number in range(20)]
            woken = crowd.answers()
            assert all(first_value(answer) == b"0" for answer in woken)
            print(
                f"{count} connections: {per_connection / 1024:.1f} KiB each; a good client's Produce took at most "
                f"{max(took_ms):.0f} ms while they were all woken"
            )
            assert per_connection < 32 * 1024
            crowd.leave()
            eventually(lambda: handles(broker.pid) <= handles_before + 5, "connections were not let go")
            assert len(read_all(good, "orders")) == 20
            assert broker.terminate() == 0


def parked_fetch(topic: str, offset: int) -> FetchRequest:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=DEADLINE_S * 1000,
        min_bytes=1,
        max_bytes=1000,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
        forgotten_topics_data=[],
    )


def first_value(answer: bytes) -> bytes | None:
    _, position = decode_response_header(answer[4:], 1, FETCH_VERSION)
    fetched = decoder(FetchResponse, FETCH_VERSION)(memoryview(answer)[4 + position :])
    return next(decode_all(bytes(fetched.responses[0].partitions[0].records or b""))).records[0].value


def timed_produce(wire: Wire, value: bytes) -> float:
    began = time.monotonic()
    assert produce(wire, "orders", value)[0] == 0
    return (time.monotonic() - began) * 1000


# -- peers that stall


def test_a_request_one_byte_at_a_time_is_answered_and_others_are_served_meanwhile(tmp_path: Path) -> None:
    with running(tmp_path / "data") as broker, connect(broker.bootstrap) as good:
        create_topic(good, "orders")
        slow = [socket.create_connection(("127.0.0.1", broker.port), timeout=DEADLINE_S) for _ in range(50)]
        frame = frame_of(ApiVersionsRequest(), 0)
        for number in range(len(frame)):
            for one in slow:
                one.sendall(frame[number : number + 1])
            assert produce(good, "orders", b"%d" % number)[0] == 0
        for one in slow:
            (size,) = struct.unpack(">i", one.recv(4, socket.MSG_WAITALL))
            assert len(one.recv(size, socket.MSG_WAITALL)) == size
            one.close()


def test_a_half_open_connection_is_ended_by_the_broker(tmp_path: Path) -> None:
    with running(tmp_path / "data") as broker, connect(broker.bootstrap) as good:
        create_topic(good, "orders")
        for sent in (b"", b"\0\0", frame_of(ApiVersionsRequest(), 0)[:-1], frame_of(parked_fetch("orders", 0), 12)):
            with connect(broker.bootstrap) as wire:
                wire.socket.sendall(sent)
                wire.socket.shutdown(socket.SHUT_WR)
                assert wire.is_closed_by_peer()
        assert produce(good, "orders", b"x")[0] == 0


def test_a_length_that_claims_much_takes_no_memory_until_it_comes(tmp_path: Path) -> None:
    with running(tmp_path / "data") as broker, connect(broker.bootstrap) as good:
        create_topic(good, "orders")
        before = own_memory(broker.pid)
        silent = [connect(broker.bootstrap) for _ in range(400)]
        for wire in silent:
            wire.socket.sendall(struct.pack(">i", FRAME_MAX) + b"x" * 1000)
        assert produce(good, "orders", b"after they all were read")[0] == 0
        grown = own_memory(broker.pid) - before
        print(f"400 claims of 100 MiB: {grown / MIB:.1f} MiB")
        assert grown < 400 * 20_000 + 8 * MIB
        silent[0].socket.sendall(b"y" * (20 * MIB))
        assert produce(good, "orders", b"and this too")[0] == 0
        assert own_memory(broker.pid) - before < 400 * 20_000 + 60 * MIB
        for wire in silent:
            wire.socket.close()


@needs_prlimit
def test_readers_of_old_data_that_do_not_read_stay_within_512_mib(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running(data_dir) as broker, connect(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        for number in range(60):
            assert produce(wire, "orders", f"{number}-".encode().ljust(900_000, b"."))[0] == 0
        assert broker.terminate() == 0
    drop_from_page_cache(data_dir)
    with running(data_dir, ("prlimit", f"--data={DATA_BYTES_MAX}", "--")) as broker:
        sleepers = [connect(broker.bootstrap) for _ in range(60)]
        for sleeper in sleepers:
            for _ in range(4):
                sleeper.send(fetch_request("orders", 0, max_bytes=50 * MIB), FETCH_VERSION)
        with connect(broker.bootstrap) as good:
            for number in range(50):
                assert produce(good, "orders", b"%d" % number)[0] == 0
            assert len(read_all(good, "orders")) == 110
            print(f"60 readers of 50 MiB each: {own_memory(broker.pid) / MIB:.0f} MiB")
        assert own_memory(broker.pid) < DATA_BYTES_MAX // 4
        for sleeper in sleepers:
            sleeper.socket.close()
        assert broker.terminate() == 0


def drop_from_page_cache(data_dir: Path) -> None:
    for path in data_dir.rglob("*.log"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_many_small_requests_with_large_answers_do_not_fill_the_memory(tmp_path: Path) -> None:
    """A Metadata of 30 bytes is answered with half a megabyte; the peer asks ten thousand times and reads nothing."""
    with running(tmp_path / "data") as broker, connect(broker.bootstrap) as good:
        create_topic(good, "large", 10_000)
        before = own_memory(broker.pid)
        deaf = connect(broker.bootstrap)
        body = encode_request_header(3, 4, 1, "d") + struct.pack(">i?", -1, False)
        deaf.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            deaf.socket.sendall((struct.pack(">i", len(body)) + body) * 10_000)
        for _ in range(20):
            assert produce(good, "large", b"x")[0] == 0
        grown = own_memory(broker.pid) - before
        print(f"deaf peer: {grown / MIB:.0f} MiB")
        assert grown < 64 * MIB
        deaf.socket.close()


# -- limits


def is_served(wire: Wire) -> bool:
    try:
        wire.ask(ApiVersionsRequest(), 0)
    except (ConnectionEndedError, ConnectionError):
        return False
    return True


def test_connections_above_the_limit_are_refused_until_one_ends(tmp_path: Path) -> None:
    with running(tmp_path / "data", max_connections="5") as broker:
        crowd = [connect(broker.bootstrap) for _ in range(8)]
        assert [is_served(wire) for wire in crowd] == [True] * 5 + [False] * 3
        crowd[0].socket.close()
        eventually(lambda: is_served(connect(broker.bootstrap)), "a free place was not given again")


def test_connections_of_one_address_above_its_limit_are_refused(tmp_path: Path) -> None:
    with running(tmp_path / "data", max_connections_per_ip="3") as broker:
        crowd = [connect(broker.bootstrap) for _ in range(5)]
        assert [is_served(wire) for wire in crowd] == [True] * 3 + [False] * 2
        with socket.create_connection(("127.0.0.1", broker.port), source_address=("127.0.0.2", 0)) as other:
            other.sendall(frame_of(ApiVersionsRequest(), 0))
            assert len(other.recv(4)) == 4


def test_idle_connections_are_closed_and_busy_ones_are_not(tmp_path: Path) -> None:
    with running(tmp_path / "data", connections_max_idle_ms="500") as broker:
        idle, busy, trickling = (connect(broker.bootstrap) for _ in range(3))
        idle.socket.setblocking(False)
        trickling.socket.setblocking(False)
        open_ones = {idle, trickling}
        trickling.socket.sendall(struct.pack(">i", 10_000))

        def all_closed() -> bool:
            assert is_served(busy)
            for wire in tuple(open_ones):
                if has_ended(wire.socket):
                    open_ones.discard(wire)
            if trickling in open_ones:
                with contextlib.suppress(OSError):
                    trickling.socket.sendall(b"x")
            return not open_ones

        eventually(all_closed, "an idle connection was kept")
        assert is_served(busy)


def has_ended(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_replies_of_pipelined_requests_keep_their_order(tmp_path: Path) -> None:
    with running(tmp_path / "data") as broker, connect(broker.bootstrap) as wire:
        create_topic(wire, "orders", 4)
        sent = []
        for number in range(200):
            if number % 3 == 2:
                sent.append((18, 0, wire.send(ApiVersionsRequest(), 0)))
            else:
                acks = -1 if number % 2 else 1
                request = produce_request("orders", b"%d" % number, partition=number % 4, acks=acks)
                sent.append((0, PRODUCE_VERSION, wire.send(request, PRODUCE_VERSION)))
        for key, version, correlation_id in sent:
            answer = wire.receive(key, version, correlation_id)
            if key == 0:
                assert answer.responses[0].partition_responses[0].error_code == 0
