"""A broker on virtual time: one thread of events, a clock that moves only when told to, and no sockets.

broker = VirtualBroker()
parked = broker.send(FetchRequest(...))
broker.time.advance(500)
parked.response
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from lowwater.broker.broker import Broker, Endpoint, Surroundings
from lowwater.broker.router import Peer, Reply, Router, Waits
from lowwater.config import BrokerConfig
from lowwater.pending import Pending
from lowwater.ports import Disk
from lowwater.testing.simdisk import SimClock, SimDisk, SimIds
from lowwater.wire.frame import decode_response_header, encode_request_header
from lowwater.wire.messages import API
from lowwater.wire.schema import declaration_of, decoder, encoder

T = TypeVar("T")
A = TypeVar("A")

TURNS_MAX = 100_000
_SIZE_BYTES = 4


class VirtualTimer:
    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualTime:
    """The Scheduler of the simulation. Callbacks run in the order of their time, then of their registration."""

    def __init__(self, clock: SimClock | None = None) -> None:
        self.clock = clock or SimClock()
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._order = itertools.count()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._soon.append(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        due = self.clock.elapsed_ms + max(0, math.ceil(delay_ms))
        heapq.heappush(self._timers, (due, next(self._order), timer))
        return timer

    @property
    def timers(self) -> int:
        """How many timers are still to fire."""
        return sum(timer.callback is not None for _, _, timer in self._timers)

    def turn(self) -> bool:
        """Run what was waiting when the turn began; False when nothing was."""
        waiting = len(self._soon)
        for _ in range(waiting):
            self._soon.popleft()()
        return waiting > 0

    def settle(self) -> None:
        """Turns until nothing is left to do at this time."""
        for _ in range(TURNS_MAX):
            if not self.turn():
                return
        raise AssertionError(f"still busy after {TURNS_MAX} turns without any time passing")

    def advance(self, by_ms: int) -> None:
        """Let time pass; every timer on the way fires at its time."""
        self.settle()
        end = self.clock.elapsed_ms + by_ms
        while self._timers and self._timers[0][0] <= end:
            due, _, timer = heapq.heappop(self._timers)
            if timer.callback is None:
                continue
            self.clock.advance(int(due - self.clock.elapsed_ms))
            timer.callback()
            self.settle()
        self.clock.advance(int(end - self.clock.elapsed_ms))


class VirtualOffload:
    """Work is done at once and its result comes in a later turn; while `held`, work waits for `step`."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._queue: list[Callable[[], None]] = []
        self.held = False
        self.done = 0

    def submit(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        def run() -> None:
            self.done += 1
            try:
                result = work()
            except Exception as error:
                failure = error
                self._time.call_soon(lambda: done(None, failure))
            else:
                self._time.call_soon(lambda: done(result, None))

        self._queue.append(run)
        if not self.held:
            self.step()

    def submit_read(self, work: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        self.submit(work, done)

    def submit_heavy(
        self, work: Callable[[A], T], argument: A, done: Callable[[T | None, BaseException | None], None]
    ) -> None:
        self.submit(lambda: work(argument), done)

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def do(self, place: int) -> None:
        """Do one piece of work, by its place among those that wait: threads do not keep an order."""
        self._queue.pop(place)()

    def step(self, count: int | None = None) -> None:
        """Do the first `count` pieces of work, or all that wait now."""
        for _ in range(len(self._queue) if count is None else count):
            self.do(0)

    def release(self) -> None:
        """Do everything, and go on so."""
        self.held = False
        self.step()


class Asked:
    """A request under way, as its connection sees it."""

    def __init__(self, api_key: int, version: int, correlation_id: int) -> None:
        self._key = (api_key, version, correlation_id)
        self._outcome: Pending[Reply | None] | None = None
        self._reply: Reply | None = None

    def take(self, answer: Reply | Waits | None) -> None:
        if isinstance(answer, Waits):
            self._outcome = answer
        else:
            self._reply = answer

    @property
    def is_answered(self) -> bool:
        return self._outcome is None or self._outcome.done

    @property
    def response(self) -> Any:
        """The decoded answer; None when none is wanted. Raises what would have ended the connection."""
        reply = self._reply if self._outcome is None else self._outcome.result()
        if reply is None:
            return None
        api_key, version, correlation_id = self._key
        frame = b"".join(bytes(part) for part in reply)
        assert int.from_bytes(frame[:_SIZE_BYTES], "big") == len(frame) - _SIZE_BYTES, "the length is that of the frame"
        answered, position = decode_response_header(frame[_SIZE_BYTES:], api_key, version)
        assert answered == correlation_id, "an answer names its question"
        return decoder(API[api_key].response, version)(memoryview(frame)[_SIZE_BYTES + position :])

    def when_answered(self, callback: Callable[[], None]) -> None:
        """Call back in the very moment of the answer; at once when there is one."""
        if self._outcome is None:
            callback()
        else:
            self._outcome.on_done(lambda _: callback())

    def disconnect(self) -> None:
        """The client is gone before it was answered."""
        if self._outcome is not None:
            self._outcome.abandon()


class VirtualBroker:
    """One node over a simulated disk. The same seed and the same calls give the same run."""

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        *,
        disk: Disk | None = None,
        data_dir: str = "/data",
        seed: int = 0,
    ) -> None:
        self.config = BrokerConfig.load(None, dict(config or {}))
        self.sim_disk = disk if isinstance(disk, SimDisk) else SimDisk()
        self.disk: Disk = disk or self.sim_disk
        self.clock = self.sim_disk.clock
        self.data_dir = data_dir
        self._ids = SimIds(self.sim_disk, seed)
        self._correlation_ids = itertools.count(1)
        self.start()

    def start(self) -> None:
        """A new process on the same disk."""
        self.time = VirtualTime(self.clock)
        self.offload = VirtualOffload(self.time)
        surroundings = Surroundings(self.disk, self.clock, self._ids, self.time, self.offload)
        self.broker = Broker(self.config, self.data_dir, surroundings)
        self.router = Router(self.broker)
        self.broker.open()
        self.broker.advertised = Endpoint("127.0.0.1", 9092)

    def stop(self) -> None:
        self.time.settle()
        self.broker.close()

    def kill(self) -> None:
        """End like a killed process: nothing is flushed, nobody is answered."""
        self.broker.abandon()

    def send(self, request: Any, version: int | None = None, *, client_id: str = "virtual") -> Asked:
        """Dispatch one request, without waiting for its answer. Without a version: the newest."""
        api = API[declaration_of(type(request)).key]
        chosen = api.version_max if version is None else version
        correlation_id = next(self._correlation_ids)
        frame = encode_request_header(api.key, chosen, correlation_id, client_id)
        frame += encoder(api.request, chosen)(request)
        asked = Asked(api.key, chosen, correlation_id)
        asked.take(self.dispatch(frame))
        return asked

    def dispatch(self, frame: bytes) -> Reply | Waits | None:
        """One frame as it would come from a socket, without its length."""
        return self.router.dispatch(memoryview(bytearray(frame)), Peer("127.0.0.1", "PLAINTEXT"))

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Send, let everything settle that needs no time to pass, and give the answer."""
        asked = self.send(request, version)
        self.time.settle()
        return asked.response
