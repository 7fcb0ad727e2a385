"""A client of one connection that sends exactly what a test asks for, well-formed or not, and hides nothing."""

from __future__ import annotations

import itertools
import socket
import struct
from types import TracebackType
from typing import Any

from lowwater.wire.frame import decode_response_header, encode_request_header
from lowwater.wire.messages import API
from lowwater.wire.schema import decoder, encoder

TIMEOUT_S = 20
_KEYS = {api.request: api for api in API.values()}


class ConnectionEndedError(Exception):
    """The broker closed the connection instead of answering."""


class Wire:
    """`wire.ask(MetadataRequest(...), version)` sends one request and decodes its response."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_ids = itertools.count(1)

    def __enter__(self) -> Wire:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Without a version: the newest that is declared."""
        api = _KEYS[type(request)]
        chosen = api.version_max if version is None else version
        correlation_id = self.send(request, chosen)
        return self.receive(api.key, chosen, correlation_id)

    def send(self, request: Any, version: int) -> int:
        """Send without waiting; the correlation id to `receive` by."""
        api = _KEYS[type(request)]
        return self.send_body(api.key, version, encoder(api.request, version)(request))

    def send_body(self, api_key: int, version: int, body: bytes) -> int:
        correlation_id = next(self._correlation_ids)
        header = encode_request_header(api_key, version, correlation_id, "raw")
        self.send_frame(header + body)
        return correlation_id

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api_key: int, version: int, correlation_id: int) -> Any:
        frame = self.receive_frame()
        answered, position = decode_response_header(frame, api_key, version)
        assert answered == correlation_id, f"an answer to request {answered}, expected {correlation_id}"
        return decoder(API[api_key].response, version)(memoryview(frame)[position:])

    def receive_frame(self) -> bytearray:
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytearray:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self.socket.recv(size - len(received))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ConnectionEndedError(f"closed after {len(received)} of {size} bytes")
            received += piece
        return received

    def is_closed_by_peer(self) -> bool:
        """Whether the broker ends the connection without another byte. Waits for it."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
