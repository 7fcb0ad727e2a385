"""From a request frame to its reply: find the handler, decode, call, encode.

A handler stands in `broker/handlers/<api>.py` under `@handles(Request)`. It returns the response, `None` (no reply is
wanted), a `Pending` response, or is a coroutine. ApiVersions is derived from the table built here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from lowwater.broker.handlers import SERVED
from lowwater.broker.metrics import Durations
from lowwater.broker.refusal import refuse
from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.pending import Pending, run
from lowwater.ports import Clock
from lowwater.types import Buffer
from lowwater.wire.fields import holds_records
from lowwater.wire.frame import decode_request_header, response_lead
from lowwater.wire.messages import API, Api
from lowwater.wire.schema import declaration_of, decoder, encoder, parts_encoder

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

logger = logging.getLogger(__name__)

Reply = list[Buffer]
"""A whole response frame, length included, in pieces that may refer to mapped files."""

Handler = Callable[["Broker", Any, "RequestContext"], Any]
H = TypeVar("H", bound=Handler)

PRODUCE = 0
API_VERSIONS = 18
LENGTH_SIZE = 4
_new = tuple.__new__


class RequestContext(NamedTuple):
    """What a handler may know of the connection and of the version that was asked."""

    api_version: int
    client_id: str | None
    client_host: str
    listener: str


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection."""

    host: str
    listener: str


@dataclass(frozen=True, slots=True)
class HandlerEntry:
    handler: Handler
    pipelines: bool


HANDLERS: dict[int, HandlerEntry] = {}
SERVED_APIS = {key: api for key, api in API.items() if api.name in SERVED}
# Lower than what is served: older librdkafka turns compression off when it does not see Produce v0.
ADVERTISED_FROM = {PRODUCE: 0}


def handles(request: type[Any], *, pipelines: bool = False) -> Callable[[H], H]:
    """Register a handler. `pipelines`: later requests of the connection are served while its reply is pending."""

    def register(handler: H) -> H:
        HANDLERS[declaration_of(request).key] = HandlerEntry(handler, pipelines)
        return handler

    return register


def advertised_versions() -> Iterator[tuple[int, int, int]]:
    """(api key, lowest, highest version) of everything that is served."""
    for key, api in sorted(SERVED_APIS.items()):
        yield key, ADVERTISED_FROM.get(key, api.version_min), api.version_max


def handler_of(api: Api) -> HandlerEntry:
    if api.key not in HANDLERS:
        import_module(f"lowwater.broker.handlers.{_snake_case(api.name)}")
    return HANDLERS[api.key]


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


class Route:
    """One (API, version): its codec and handler, compiled on first use."""

    __slots__ = (
        "_encode",
        "_encode_parts",
        "_header_size",
        "_pack_lead",
        "api",
        "calls",
        "decode",
        "handler",
        "pipelines",
        "took",
        "version",
    )

    def __init__(self, api: Api, version: int, entry: HandlerEntry) -> None:
        self.api = api
        self.version = version
        self.handler = entry.handler
        self.pipelines = entry.pipelines
        self.decode = decoder(api.request, version)
        parted = holds_records(api.response)
        self._encode_parts = parts_encoder(api.response, version) if parted else None
        self._encode = encoder(api.response, version)
        lead = response_lead(api.key, version)
        self._pack_lead, self._header_size = lead.pack, lead.size - LENGTH_SIZE
        self.calls = 0
        self.took = Durations()

    def reply(self, response: Any, correlation_id: int) -> Reply:
        if self._encode_parts is None:
            # A handler that keeps encoded answers returns them as they are.
            body = response if isinstance(response, bytes) else self._encode(response)
            return [self._pack_lead(self._header_size + len(body), correlation_id) + body]
        parts = self._encode_parts(response)
        return [self._pack_lead(self._header_size + sum(map(len, parts)), correlation_id), *parts]


class Waits(Pending[Reply | None]):
    """A reply that is not there yet. `pipelines`: later requests of its connection are served meanwhile.

    `is_ready` is the connection's: it can be sent. One that failed never is.
    """

    __slots__ = ("is_ready", "pipelines")

    def __init__(self, *, pipelines: bool) -> None:
        Pending.__init__(self)  # as in Ticket
        self.is_ready = False
        self.pipelines = pipelines


class LateReply(Waits):
    """The response of a handler as bytes, when it comes."""

    __slots__ = ("_began_ms", "_clock", "_correlation_id", "_request", "_route")

    def __init__(
        self, route: Route, request: Any, response: Pending[Any], correlation_id: int, clock: Clock, began_ms: float
    ) -> None:
        Waits.__init__(self, pipelines=route.pipelines)
        self._route = route
        self._clock = clock
        self._began_ms = began_ms
        self._request = request
        self._correlation_id = correlation_id
        self.on_abandon = response.abandon
        response.on_done(self._take)

    def _take(self, response: Pending[Any]) -> None:
        try:
            try:
                value = response.result()
            except ApiError as error:
                value = refuse(self._route.api, self._request, error, self._route.version)
            answer = None if value is None else self._route.reply(value, self._correlation_id)
        except Exception as error:
            # Ends this connection. Raised here it would hit whoever settled the response, with all who wait there.
            self.fail(error)
        else:
            self._route.took.add(self._clock.monotonic_ms() - self._began_ms)
            self.resolve(answer)


class Router:
    """Serves frames of all connections; holds no state of any of them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._clock = broker.clock
        self._routes: dict[int, Route] = {}
        self.intercept: Callable[[Route, Any, RequestContext], Any] | None = None

    def requests_by_api(self) -> dict[str, int]:
        """How many requests of each API were served since the start."""
        counts: dict[str, int] = {}
        for route in self._routes.values():
            counts[route.api.name] = counts.get(route.api.name, 0) + route.calls
        return counts

    def took_by_api(self) -> dict[str, Durations]:
        """From a request's last byte to its reply, the time that it waited on purpose included."""
        found: dict[str, Durations] = {}
        for route in self._routes.values():
            found.setdefault(route.api.name, Durations()).merge(route.took)
        return found

    def dispatch(self, frame: memoryview, peer: Peer) -> Reply | Waits | None:
        """Serve one request. WireError: the connection cannot go on."""
        began_ms = self._clock.monotonic_ms()
        api_key, version, correlation_id, client_id, body_at = decode_request_header(frame)
        route = self._routes.get(api_key << 16 | version & 0xFFFF)
        if route is None:
            route = self._new_route(api_key, version)
            if route is None:
                return self._unsupported_api_versions(correlation_id)
        route.calls += 1
        # What RequestContext(…) does, without its call.
        context = _new(RequestContext, (version, client_id, peer.host, peer.listener))
        request = route.decode(frame, body_at)
        if self.intercept is None:
            response = self.serve(route, request, context)
        else:
            response = self._intercepted(route, request, context)
        if isinstance(response, Pending):
            return LateReply(route, request, response, correlation_id, self._clock, began_ms)
        reply = None if response is None else route.reply(response, correlation_id)
        route.took.add(self._clock.monotonic_ms() - began_ms)
        return reply

    def _new_route(self, api_key: int, version: int) -> Route | None:
        api = SERVED_APIS.get(api_key)
        if api is None:
            raise WireError(f"API key {api_key} is not served here")
        if not api.version_min <= version <= api.version_max:
            if api_key == API_VERSIONS:
                return None
            raise WireError(f"{api.name} v{version} is not served, only v{api.version_min} to v{api.version_max}")
        route = self._routes[api_key << 16 | version] = Route(api, version, handler_of(api))
        return route

    def _unsupported_api_versions(self, correlation_id: int) -> Reply:
        """A client newer than us learns our versions from a v0 answer and asks again."""
        route = self._routes.get(API_VERSIONS << 16) or self._new_route(API_VERSIONS, 0)
        assert route is not None
        response = route.handler(self._broker, None, RequestContext(0, None, "", ""))
        response.error_code = ErrorCode.UNSUPPORTED_VERSION
        return route.reply(response, correlation_id)

    def serve(self, route: Route, request: Any, context: RequestContext) -> Any:
        """Call the handler itself, whatever `intercept` would do."""
        try:
            answer = route.handler(self._broker, request, context)
        except ApiError as error:
            return refuse(route.api, request, error, route.version)
        if isinstance(answer, CoroutineType):
            return _settled(run(answer), route, request)
        return answer

    def _intercepted(self, route: Route, request: Any, context: RequestContext) -> Any:
        """The response, a Pending of it, or None when the client wants no reply."""
        assert self.intercept is not None
        answer = self.intercept(route, request, context)
        return answer if answer is not None else self.serve(route, request, context)


def _settled(pending: Pending[Any], route: Route, request: Any) -> Any:
    """A coroutine that never waited answers like a plain function."""
    if not pending.done:
        return pending
    try:
        return pending.result()
    except ApiError as error:
        return refuse(route.api, request, error, route.version)
