"""One broker as the network sees it: at most one connection, opened when something is asked, opened again when lost."""

from __future__ import annotations

import logging
from collections import deque
from copy import copy
from enum import Enum
from typing import Any

from lowwater.client.buffers import Buffers
from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Driver, backoff_ms
from lowwater.client.errors import ClientError, ClosedError, ConnectError, RequestTimeoutError, UnsupportedError
from lowwater.client.session import Leased, Sent, Session
from lowwater.pending import Pending
from lowwater.ports import Timer
from lowwater.wire.messages import Api

LOG = logging.getLogger("lowwater.client")
_SILENT_MS = 5_000
"""So long nothing is said of a broker that cannot be reached: it may be starting. Who waits longer wants to know."""


class State(Enum):
    IDLE = "no connection, and none is wanted"
    CONNECTING = "being opened"
    READY = "open"
    WAITING = "to be opened again after a while"
    CLOSED = "not to be opened again"


class Ask:
    """A request on its way: queued, then sent, then answered, unless its time is over before."""

    __slots__ = ("answer", "answered", "api", "request", "sent", "timer", "versions")

    def __init__(self, api: Api, request: Any, versions: tuple[int, int], answered: bool) -> None:
        self.api = api
        self.request = request
        self.versions = versions
        self.answered = answered
        self.answer: Pending[Any] = Pending()
        self.sent: Sent | None = None
        self.timer: Timer | None = None


class Link:
    """Requests leave in the order they were asked; answers come in the same order."""

    def __init__(
        self, config: ClientConfig, driver: Driver, buffers: Buffers, address: Address, told: set[Address]
    ) -> None:
        """`told`: of which brokers was said that they cannot be reached; shared by all links."""
        self._config = config
        self._driver = driver
        self._buffers = buffers
        self.address = address
        self.state = State.IDLE
        self.failures = 0
        self._told = told
        self._silent_until_ms: float | None = None  # since the connection failed
        self._failure: ClientError | None = None  # why there was no connection the last time
        self.retry_at_ms = 0.0  # while WAITING
        self.last_used_ms = driver.monotonic_ms()
        self._quiet_until_ms = 0.0  # the broker wants to hear nothing before
        self._queue: deque[Ask] = deque()
        self._session: Session | None = None
        self._timer: Timer | None = None  # of connecting, waiting, or being idle

    # ---- asking

    def ask(self, ask: Ask, timeout_ms: float) -> Pending[Any]:
        """The answer, or within `timeout_ms` why there is none."""
        if self.state is State.CLOSED:
            ask.answer.fail(ClosedError("the client was closed"))
            return ask.answer
        ask.timer = self._driver.call_later(timeout_ms, lambda: self._expire(ask, timeout_ms))
        ask.answer.on_abandon = lambda: self._abandon(ask)
        self._queue.append(ask)
        self.last_used_ms = self._driver.monotonic_ms()
        if self.state is State.IDLE:
            self._dial()
        self._flush()
        return ask.answer

    @property
    def load(self) -> int:
        """Requests that are queued or not yet answered."""
        return len(self._queue) + (self._session.in_flight if self._session is not None else 0)

    def versions(self, api: Api) -> range:
        """Versions that both sides know; only while READY."""
        theirs = self._session.versions.get(api.key) if self._session is not None else None
        return common_versions(api, theirs, (api.version_min, api.version_max))

    def _flush(self) -> None:
        session = self._session
        if self._queue and self._quiet_until_ms > self._driver.monotonic_ms():
            return
        while self._queue and session is not None and session.can_send():
            self._send(session, self._queue.popleft())

    def _send(self, session: Session, ask: Ask) -> None:
        try:
            version = self._chosen(session, ask)
            request = ask.request(version) if callable(ask.request) else ask.request
            ask.sent = session.send(ask.api, version, request, answered=ask.answered)
        except ValueError as error:
            self._settle(ask, UnsupportedError(f"{self.address} does not know how to say this: {error}"))
            return
        except ClientError as error:
            self._settle(ask, error)
            return
        assert ask.sent.answer is not None
        ask.sent.answer.on_done(lambda done: self._answered(ask, done))

    def _chosen(self, session: Session, ask: Ask) -> int:
        common = common_versions(ask.api, session.versions.get(ask.api.key), ask.versions)
        if not common:
            theirs = session.versions.get(ask.api.key)
            knows = "does not know it" if theirs is None else f"knows versions {theirs[0]} to {theirs[1]}"
            raise UnsupportedError(
                f"{ask.api.name} cannot be asked of {self.address}, which {knows}; "
                f"needed: {ask.versions[0]} to {ask.versions[1]}"
            )
        return common[-1]

    def _answered(self, ask: Ask, done: Pending[Any]) -> None:
        self.last_used_ms = self._driver.monotonic_ms()
        try:
            answer = done.result()
        except ClientError as error:
            self._settle(ask, error)
        else:
            _stop(ask.timer)
            self._heed(answer)
            ask.answer.resolve(answer)

    def _heed(self, answer: Any) -> None:
        """A broker whose quota is used up says for how long it will not listen (KIP-219)."""
        response = answer.response if isinstance(answer, Leased) else answer
        quiet_ms = getattr(response, "throttle_time_ms", 0)
        if quiet_ms > 0:
            self._quiet_until_ms = self._driver.monotonic_ms() + quiet_ms
            self._driver.call_later(quiet_ms, self._flush)

    def _settle(self, ask: Ask, error: ClientError) -> None:
        _stop(ask.timer)
        if not ask.answer.done:
            ask.answer.fail(error)

    def _expire(self, ask: Ask, timeout_ms: float) -> None:
        if ask.answer.done:
            return
        waited = f"{timeout_ms / 1000:g} s"
        if ask.sent is None:
            self._queue.remove(ask)
            unsent = RequestTimeoutError(f"{ask.api.name} could not be sent to {self.address} in {waited}")
            self._settle(ask, copy(self._failure) if self._failure is not None else unsent)
            return
        error = RequestTimeoutError(f"no answer to {ask.api.name} from {self.address} in {waited}")
        self._forget(ask.sent, error, waited_ms=timeout_ms)
        self._settle(ask, error)

    def _forget(self, sent: Sent, error: ClientError, waited_ms: float) -> None:
        """Nobody waits for this answer, but all that was asked behind it does, on the same connection. When it is not
        there in the time that any request may take, another connection may do better."""
        session, patience_ms = self._session, self._config.int("request.timeout.ms") - waited_ms
        sent.forget()
        if session is None:
            return
        if patience_ms <= 0:
            session.close(error)
        else:
            self._driver.call_later(patience_ms, lambda: session.close(error) if session.awaits(sent) else None)

    def _abandon(self, ask: Ask) -> None:
        _stop(ask.timer)
        if ask.sent is not None:
            late = RequestTimeoutError(f"no answer to {ask.api.name} from {self.address}, for which nobody waited")
            self._forget(ask.sent, late, waited_ms=0)
        elif ask in self._queue:
            self._queue.remove(ask)

    # ---- the connection

    def connect(self) -> None:
        """Open a connection now, unless there is one, or it is too early for another try."""
        if self.state is State.IDLE:
            self._dial()

    def _dial(self) -> None:
        self.state = State.CONNECTING
        limit_ms = self._config.int("socket.connection.setup.timeout.ms")
        session = Session(
            self._config,
            self._driver,
            self._buffers,
            self.address,
            on_ready=self._ready,
            on_answer=self._flush,
            on_end=lambda error: self._ended(session, error),
        )
        self._session = session
        late = ConnectError(f"{self.address} did not let us in within {limit_ms / 1000:g} s")
        self._timer = self._driver.call_later(limit_ms, lambda: session.close(late))
        session.transport = self._driver.dial(self.address, session)

    def _ready(self) -> None:
        if self.state is State.CONNECTING:
            _stop(self._timer)
            self.state = State.READY
            self.failures = 0
            self._silent_until_ms = None
            self._told.discard(self.address)
            self._failure = None
            self._watch_idle()
        self._flush()

    def _ended(self, session: Session, error: ClientError) -> None:
        if self._session is not session:
            return
        _stop(self._timer)
        was_connecting = self.state is State.CONNECTING
        self._session = None
        self.failures += 1
        self._failure = error if was_connecting else None
        delay_ms = backoff_ms(
            self._config.int("reconnect.backoff.ms"),
            self._config.int("reconnect.backoff.max.ms"),
            self.failures,
            self._driver.ids,
        )
        if was_connecting:
            self._tell(error)
        self.state = State.WAITING
        self.retry_at_ms = self._driver.monotonic_ms() + delay_ms
        self._timer = self._driver.call_later(delay_ms, self._again)
        if was_connecting or not error.retriable:
            self._fail_queued(error)

    def _tell(self, error: ClientError) -> None:
        """Once, until there is a connection: it is tried for as long as the caller has patience."""
        now_ms = self._driver.monotonic_ms()
        if self._silent_until_ms is None:
            self._silent_until_ms = now_ms + _SILENT_MS
        elif now_ms >= self._silent_until_ms and self.address not in self._told:
            self._told.add(self.address)
            LOG.warning("%s; it is tried again", error)

    def _again(self) -> None:
        self.state = State.IDLE
        if self._queue:
            self._dial()

    def _fail_queued(self, error: ClientError) -> None:
        waiting, self._queue = self._queue, deque()
        for ask in waiting:
            self._settle(ask, copy(error))

    def _watch_idle(self) -> None:
        idle_ms = self._config.int("connections.max.idle.ms")
        if not idle_ms:
            return
        left_ms = self.last_used_ms + idle_ms - self._driver.monotonic_ms()
        if left_ms <= 0 and not self.load:
            self.rest()
        else:
            self._timer = self._driver.call_later(max(left_ms, idle_ms / 10), self._watch_idle)

    def rest(self) -> None:
        """Close a connection that nobody uses; it is opened again when something is asked."""
        if self.state is State.READY and not self.load:
            self.hang_up(ClosedError("the connection was idle"))

    def hang_up(self, error: ClientError) -> None:
        """Close the connection; everything that waits fails with `error`, and what is asked then opens another."""
        self._end(State.IDLE, error)

    def close(self, error: ClientError) -> None:
        """The same for good."""
        self._end(State.CLOSED, error)

    def _end(self, state: State, error: ClientError) -> None:
        # Whoever is told may ask again at once, so what waited is set apart first.
        session, self._session = self._session, None
        waiting, self._queue = self._queue, deque()
        self.state = state
        _stop(self._timer)
        if session is not None:
            session.close(error)
        for ask in waiting:
            self._settle(ask, copy(error))


def common_versions(api: Api, theirs: tuple[int, int] | None, wanted: tuple[int, int]) -> range:
    """Versions of an API that both sides know, within those wanted; empty when there are none."""
    lowest, highest = theirs or (0, -1)
    return range(max(api.version_min, lowest, wanted[0]), min(api.version_max, highest, wanted[1]) + 1)


def _stop(timer: Timer | None) -> None:
    if timer is not None:
        timer.cancel()
