"""The client on virtual time, with brokers that are played by the test: no socket, no clock, no thread."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Receiver
from lowwater.client.errors import ClientError, ConnectError, DisconnectedError
from lowwater.client.login import AUTHENTICATE, HANDSHAKE
from lowwater.client.network import Network
from lowwater.pending import Pending
from lowwater.testing.virtual_time import VirtualTime, VirtualTimer
from lowwater.types import Buffer
from lowwater.wire.frame import decode_request_header, response_lead
from lowwater.wire.messages import API, Api, ApiVersionsRequest, ApiVersionsResponse
from lowwater.wire.messages.api_versions import ApiVersion
from lowwater.wire.schema import decoder, encoder

T = TypeVar("T")

APIS: dict[int, Api] = {**API, HANDSHAKE.key: HANDSHAKE, AUTHENTICATE.key: AUTHENTICATE}
LATER = object()
"""An answer that the test sends by itself."""

Answer = Callable[["Asked"], Any]


class SeededIds:
    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> bytes:
        return self._random.randbytes(15) + b"\x01"

    def boot_id(self) -> str:
        return ""


class Asked:
    """A request as a broker sees it."""

    def __init__(self, line: Line, api: Api, version: int, correlation_id: int, request: Any) -> None:
        self.line = line
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.request = request

    def answer(self, response: Any, *, version: int | None = None) -> None:
        version = self.version if version is None else version
        body = encoder(self.api.response, version)(response)
        lead = response_lead(self.api.key, version)
        self.line.deliver(lead.pack(lead.size - 4 + len(body), self.correlation_id) + body)


class Line:
    """One connection, seen from the broker's end. It is the client's Transport."""

    def __init__(self, driver: VirtualDriver, address: Address, receiver: Receiver) -> None:
        self._driver = driver
        self._receiver = receiver
        self._unparsed = b""
        self.address = address
        self.is_open = True
        self.asked: list[Asked] = []

    def write(self, parts: Sequence[Buffer]) -> None:
        self._unparsed += b"".join(bytes(part) for part in parts)
        while len(self._unparsed) >= 4:
            size = int.from_bytes(self._unparsed[:4], "big")
            frame, self._unparsed = self._unparsed[4 : 4 + size], self._unparsed[4 + size :]
            self._take(memoryview(frame))

    def _take(self, frame: memoryview) -> None:
        api_key, version, correlation_id, _, at = decode_request_header(frame)
        api = APIS[api_key]
        asked = Asked(self, api, version, correlation_id, decoder(api.request, version)(frame[at:]))
        self.asked.append(asked)
        response = self._driver.answer(asked)
        if response is not LATER:
            asked.answer(response)

    def deliver(self, data: bytes) -> None:
        """In the next turn, in pieces as they may come."""
        self._driver.call_soon(lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        while data and self.is_open:
            room = self._receiver.room()
            count = min(len(room), len(data), self._driver.piece_bytes)
            room[:count] = data[:count]
            data = data[count:]
            self._receiver.received(count)

    def drop(self, error: ClientError | None = None) -> None:
        if self.is_open:
            self.is_open = False
            self._receiver.lost(error or DisconnectedError(f"{self.address} closed the connection"))

    def abort(self) -> None:
        self.is_open = False


class VirtualDriver:
    """Plays every broker by `answer`; `unreachable` addresses refuse, `silent` ones never say anything."""

    def __init__(self, answer: Answer, seed: int = 0) -> None:
        self.time = VirtualTime()
        self.answer = answer
        self.ids = SeededIds(seed)
        self.lines: list[Line] = []
        self.unreachable: dict[Address, ClientError] = {}
        self.silent: set[Address] = set()
        self.piece_bytes = 1 << 30
        self.dialled: list[tuple[float, Address]] = []

    def now_ms(self) -> int:
        return self.time.clock.now_ms()

    def monotonic_ms(self) -> float:
        return self.time.clock.monotonic_ms()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.time.call_soon(callback)

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> VirtualTimer:
        return self.time.call_later(delay_ms, callback)

    def dial(self, address: Address, receiver: Receiver) -> Line:
        self.dialled.append((self.monotonic_ms(), address))
        line = Line(self, address, receiver)
        self.lines.append(line)
        if address in self.unreachable:
            self.call_soon(lambda: line.drop(self.unreachable[address]))
        elif address not in self.silent:
            self.call_soon(lambda: receiver.connected() if line.is_open else None)
        return line

    def elsewhere(self, work: Callable[[], T]) -> Pending[T]:
        done: Pending[T] = Pending()
        self.call_soon(lambda: done.resolve(work()))
        return done

    @property
    def open_lines(self) -> list[Line]:
        return [line for line in self.lines if line.is_open]

    def requests(self, name: str) -> list[Asked]:
        """Every request of this API, of all connections."""
        return [asked for line in self.lines for asked in line.asked if asked.api.name == name]


def versions_answer(versions: dict[int, tuple[int, int]] | None = None) -> ApiVersionsResponse:
    known = versions or {key: (api.version_min, api.version_max) for key, api in APIS.items()}
    return ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in known.items()]
    )


def talking(answers: dict[str, Any]) -> Answer:
    """Brokers that answer by the name of the API: with a message, or with what a function makes of the request."""

    def answer(asked: Asked) -> Any:
        if asked.api.name not in answers and isinstance(asked.request, ApiVersionsRequest):
            return versions_answer()
        given = answers[asked.api.name]
        return given(asked) if callable(given) else given

    return answer


def network_of(driver: VirtualDriver, **settings: Any) -> Network:
    given = {"bootstrap.servers": "a:1"} | {name.replace("_", "."): value for name, value in settings.items()}
    return Network(ClientConfig(given), driver)


def refused(address: Address) -> ConnectError:
    return ConnectError(f"{address} refuses connections")
