"""A broker without sockets, threads or files: requests go through the router, everything else is simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from lowwater.broker.broker import Broker, Endpoint, Surroundings
from lowwater.broker.router import Peer, Router, Waits
from lowwater.config import BrokerConfig
from lowwater.pending import Pending
from lowwater.ports import Disk
from lowwater.testing.simdisk import SimClock, SimDisk, SimIds
from lowwater.wire.frame import decode_response_header, encode_request_header
from lowwater.wire.messages import API
from lowwater.wire.records import Record, build_batch
from lowwater.wire.schema import declaration_of, decoder, encoder

NODE = 1
Done = Callable[[Any, BaseException | None], None]


class HeldOffload:
    """Runs work at once, or when told to."""

    def __init__(self) -> None:
        self.hold = False
        self._held: list[tuple[Callable[[], Any], Done]] = []

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        self._held.append((work, done))
        if not self.hold:
            self.release()

    submit_read = submit

    def release(self) -> None:
        while self._held:
            work, done = self._held.pop(0)
            try:
                result = work()
            except Exception as error:
                done(None, error)
            else:
                done(result, None)


class NoTimer:
    def cancel(self) -> None:
        pass


class IdleScheduler:
    """Turns come when told to; timers never fire."""

    def __init__(self) -> None:
        self._soon: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> NoTimer:
        return NoTimer()

    def turn(self) -> None:
        while self._soon:
            self._soon.pop(0)()


class BrokerInMemory:
    """`ask` sends a request in some version and returns the decoded answer."""

    def __init__(self, config: Mapping[str, str] | None = None, disk: SimDisk | None = None) -> None:
        self.config = BrokerConfig.load(None, {"node.id": str(NODE), **(config or {})})
        self.sim_disk = disk or SimDisk()
        self.disk: Disk = self.sim_disk
        self.offload = HeldOffload()
        self.scheduler = IdleScheduler()
        self.clock = SimClock()
        self._seed = 0
        self.start()

    def start(self) -> None:
        self._seed += 1
        ids = SimIds(self.sim_disk, self._seed)
        self.broker = Broker(
            self.config, "/data", Surroundings(self.disk, self.clock, ids, self.scheduler, self.offload)
        )
        self.broker.open()
        self.broker.advertised = Endpoint("broker.example", 9092)
        self.router = Router(self.broker)

    def restart(self, config: Mapping[str, str] | None = None) -> None:
        self.broker.close()
        if config is not None:
            self.config = BrokerConfig.load(None, {"node.id": str(NODE), **config})
        self.start()

    def append(self, topic: str, count: int, *, producer_id: int = -1) -> None:
        """Batches of one record each to partition 0; an idempotent producer's when it has an id."""
        partition = self.broker.partition(topic, 0)
        now_ms = self.clock.now_ms()
        for number in range(count):
            record = Record(offset=0, timestamp=now_ms, key=b"k%d" % number, value=b"v", headers=())
            producer = (
                {} if producer_id < 0 else {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": number}
            )
            partition.append(memoryview(bytearray(build_batch([record], **producer))), now_ms, zstd_allowed=True)

    def begin(self, request: Any, version: int | None = None) -> Pending[Any] | Any:
        """The answer, or a Pending of its bytes."""
        api = API[declaration_of(type(request)).key]
        version = api.version_max if version is None else version
        header = encode_request_header(api.key, version, 7, "tests")
        frame = memoryview(bytearray(header + encoder(type(request), version)(request)))
        reply = self.router.dispatch(frame, Peer("127.0.0.1", "PLAINTEXT"))
        if isinstance(reply, Waits):
            if not reply.done:
                return reply
            reply = reply.result()
        return self.decode(reply, api.key, version)

    def ask(self, request: Any, version: int | None = None) -> Any:
        answer = self.begin(request, version)
        if not isinstance(answer, Pending):
            return answer
        self.scheduler.turn()
        assert answer.done, "the answer waits for something"
        api = API[declaration_of(type(request)).key]
        return self.decode(answer.result(), api.key, api.version_max if version is None else version)

    @staticmethod
    def decode(reply: Any, api_key: int, version: int) -> Any:
        data = memoryview(b"".join(reply))[4:]
        _, body_at = decode_response_header(data, api_key, version)
        return decoder(API[api_key].response, version)(data[body_at:])


@pytest.fixture
def node() -> BrokerInMemory:
    return BrokerInMemory()


@pytest.fixture
def new_node() -> type[BrokerInMemory]:
    """For tests that need a broker of their own making."""
    return BrokerInMemory
