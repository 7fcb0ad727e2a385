"""One connection's protocol: frames, which answer belongs to which request, versions, and the login.

Knows no socket: it writes to a `Transport` and is told what was received.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any

from lowwater.client.buffers import Buffers, Lease
from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Driver, Transport, jitter
from lowwater.client.errors import ClientError, ConnectError, DisconnectedError, ProtocolError
from lowwater.client.flow import Flow
from lowwater.client.inbox import Frame, Inbox
from lowwater.client.login import Login
from lowwater.errors import ErrorCode, WireError
from lowwater.pending import Pending
from lowwater.types import Buffer
from lowwater.wire.frame import API_VERSIONS, decode_response_header, encode_request_header
from lowwater.wire.messages import Api
from lowwater.wire.schema import decoder, encoder, holds_records, parts_encoder

_SIZE = Struct(">i")
_ERROR = Struct(">h")
CORRELATION_MAX = 0x7FFFFFFF
# A login is renewed when so much of its life is over, and up to a tenth later: not all connections at once.
RENEW_AT = 0.85
_HAS_RECORDS: dict[type, bool] = {}


class Leased:
    """An answer with records, and the memory they lie in: release it when they are not needed any more."""

    __slots__ = ("_lease", "response")

    def __init__(self, response: Any, lease: Lease) -> None:
        self.response = response
        self._lease = lease

    def release(self) -> None:
        self._lease.release()


class Sent:
    """A request that was written, and who waits for its answer."""

    __slots__ = ("answer", "api", "correlation_id", "version")

    def __init__(self, api: Api, version: int, correlation_id: int) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.answer: Pending[Any] | None = Pending()

    def forget(self) -> None:
        """Nobody waits any more; the answer still comes and is thrown away."""
        self.answer = None


class Session:
    """From `open` on it negotiates and logs in; then `is_ready`. It ends once, by `lost`, `close` or a bad answer."""

    def __init__(
        self,
        config: ClientConfig,
        driver: Driver,
        buffers: Buffers,
        address: Address,
        *,
        on_ready: Callable[[], None],
        on_answer: Callable[[], None],
        on_end: Callable[[ClientError], None],
    ) -> None:
        self._config = config
        self._driver = driver
        self._address = address
        self._client_id = config.str("client.id")
        self._in_flight_max = config.int("max.in.flight.requests.per.connection")
        self._inbox = Inbox(buffers, config.int("receive.message.max.bytes"))
        self._on_ready = on_ready
        self._on_answer = on_answer
        self._on_end = on_end
        self._in_flight: deque[Sent] = deque()
        self._next_id = 1
        self._login: Flow[float] | None = None
        self._renew_at_ms: float | None = None
        self.transport: Transport | None = None
        self.versions: dict[int, tuple[int, int]] = {}
        self.is_ready = False
        self.is_over = False

    # ---- the driver's side

    def connected(self) -> None:
        self._begin_login(is_first=True)

    def room(self) -> memoryview:
        return self._inbox.room()

    def received(self, count: int) -> None:
        try:
            for frame in self._inbox.received(count):
                self._take(frame)
                if self.is_over:
                    return
        except WireError as error:
            self._end(ProtocolError(f"{self._address} sent what is not Kafka's protocol: {error}"))
            return
        if self.is_ready:
            self._on_answer()

    def lost(self, error: ClientError) -> None:
        self.transport = None
        self._end(error)

    # ---- the owner's side

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def awaits(self, sent: Sent) -> bool:
        """Whether its answer has still to come."""
        return sent in self._in_flight

    def can_send(self) -> bool:
        """Whether a request would leave at once. A login that is due is begun, and requests wait behind it."""
        if not self.is_ready or len(self._in_flight) >= self._in_flight_max:
            return False
        if self._renew_at_ms is not None and self._driver.monotonic_ms() >= self._renew_at_ms:
            self._begin_login(is_first=False)
            return False
        return True

    def send(self, api: Api, version: int, request: Any, *, answered: bool = True) -> Sent:
        """Write a request. ValueError, and nothing is written, when it cannot be said in this version."""
        sent = Sent(api, version, self._next_id)
        self._write(self._encoded(api, version, request))
        if answered:
            self._in_flight.append(sent)
        else:
            assert sent.answer is not None
            sent.answer.resolve(None)
        return sent

    def close(self, error: ClientError) -> None:
        self._end(error)

    # ---- requests

    def call(self, api: Api, version: int, request: Any) -> Pending[Any]:
        """A request of the login itself."""
        answer = self.send(api, version, request).answer
        assert answer is not None
        return answer

    def _encoded(self, api: Api, version: int, request: Any) -> list[Buffer]:
        head = encode_request_header(api.key, version, self._next_id, self._client_id)
        if _has_records(api.request):
            body = parts_encoder(api.request, version)(request)
        else:
            body = [encoder(api.request, version)(request)]
        size = len(head) + sum(map(len, body))
        return [_SIZE.pack(size) + head, *body]

    def _write(self, parts: list[Buffer]) -> None:
        self._next_id = self._next_id + 1 if self._next_id < CORRELATION_MAX else 1
        assert self.transport is not None, "the connection is over"
        self.transport.write(parts)

    # ---- answers

    def _take(self, frame: Frame) -> None:
        if not self._in_flight:
            raise WireError("an answer to nothing that was asked")
        sent = self._in_flight[0]
        correlation_id, at = decode_response_header(frame.body, sent.api.key, sent.version)
        if correlation_id != sent.correlation_id:
            raise WireError(f"the answer to request {correlation_id}, where {sent.correlation_id} was next")
        answer = None if sent.answer is None else _decoded(sent, frame, at)
        self._in_flight.popleft()
        if sent.answer is None:
            if frame.lease is not None:
                frame.lease.release()
        else:
            sent.answer.resolve(answer)

    # ---- login

    def _begin_login(self, *, is_first: bool) -> None:
        self.is_ready = False
        self._renew_at_ms = None
        login = Login(self, self._config, self._driver)
        self._login = Flow(login.begin() if is_first else login.renew())
        self._login.on_done(self._logged_in)

    def _logged_in(self, login: Pending[float]) -> None:
        if self.is_over:
            return
        try:
            lifetime_ms = login.result()
        except Exception as error:
            self._end(error if isinstance(error, ClientError) else _unexpected(error))
            return
        if lifetime_ms > 0:
            share = RENEW_AT + jitter(self._driver.ids) / 10
            self._renew_at_ms = self._driver.monotonic_ms() + lifetime_ms * share
        self.is_ready = True
        self._on_ready()

    # ---- the end

    def _end(self, error: ClientError) -> None:
        if self.is_over:
            return
        if not self.versions and isinstance(error, DisconnectedError | ProtocolError):
            error = self._not_understood(error)
        self.is_over, self.is_ready = True, False
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abort()
        if self._login is not None:
            self._login.cancel()
        waiting, self._in_flight = self._in_flight, deque()
        for sent in waiting:
            if sent.answer is not None and not sent.answer.done:
                sent.answer.fail(_cut_off(error, sent))
        self._on_end(error)

    def _not_understood(self, error: ClientError) -> ClientError:
        """Before the first answer, the usual reason is a port that expects something else."""
        protocol = self._config.str("security.protocol")
        advice = f"is security.protocol={protocol} right for this port?"
        kind = ConnectError if error.retriable else ProtocolError
        return kind(error.what, advice=advice)


def _decoded(sent: Sent, frame: Frame, at: int) -> Any:
    """The message, with its memory when there are records in it."""
    decode = decoder(sent.api.response, _version_of_answer(sent, frame, at))
    if not _has_records(sent.api.response):
        response = decode(frame.body, at)
        if frame.lease is not None:
            frame.lease.release()
        return response
    lease = frame.lease or Lease(memoryview(bytearray(frame.body)))
    return Leased(decode(lease.view, at), lease)


def _has_records(message: type[Any]) -> bool:
    known = _HAS_RECORDS.get(message)
    if known is None:
        known = _HAS_RECORDS[message] = holds_records(message)
    return known


def _unexpected(error: Exception) -> ClientError:
    failure = ClientError(f"the login failed in a way that was not expected: {type(error).__name__}")
    failure.__cause__ = error
    return failure


def _version_of_answer(sent: Sent, frame: Frame, at: int) -> int:
    """That a version of ApiVersions is not known is said in the one version that everybody can read."""
    if sent.api.key != API_VERSIONS or len(frame.body) < at + _ERROR.size:
        return sent.version
    (error,) = _ERROR.unpack_from(frame.body, at)
    return 0 if error == ErrorCode.UNSUPPORTED_VERSION else sent.version


def _cut_off(error: ClientError, sent: Sent) -> ClientError:
    """Each request its own error: they are told apart, and counted, where they are retried."""
    if not error.retriable:
        return error
    return DisconnectedError(f"{error.what}, before the answer to {sent.api.name} came", advice=error.advice)
