"""One socket of the blocking driver: connecting, TLS, and moving bytes, all without ever waiting."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any

from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Receiver
from lowwater.client.errors import ClientError
from lowwater.client.tls import connect_failure, connection_failure
from lowwater.types import Buffer

# Then others have their turn.
READS_MAX = 16
PARTS_MAX = 64
TLS_WRITE_BYTES = 16 * 1024
_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Watch = Callable[[socket.socket, int, Callable[[int], None] | None], None]
"""Tells the driver which events of a socket are wanted, and by whom; None: none any more."""


class WireSocket:
    """A Transport. `begin` tries the host's addresses one after the other."""

    def __init__(
        self,
        config: ClientConfig,
        tls: ssl.SSLContext | None,
        address: Address,
        receiver: Receiver,
        watch: Watch,
        call_soon: Callable[[Callable[[], None]], None],
    ) -> None:
        self._config = config
        self._tls = tls
        self._address = address
        self._receiver = receiver
        self._watch = watch
        self._call_soon = call_soon
        self._socket: socket.socket | None = None
        self._left: deque[tuple[Any, ...]] = deque()
        self._out: deque[memoryview] = deque()
        self._is_open = False
        self._is_over = False

    # ---- opening

    def begin(self) -> None:
        if self._is_over:
            return
        family = _FAMILIES[self._config.str("broker.address.family")]
        try:
            found = socket.getaddrinfo(self._address.host, self._address.port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            self._lose(connect_failure(error, self._address))
            return
        self._left.extend(found)
        self._try_next(OSError("the host name has no address"))

    def _try_next(self, failure: OSError) -> None:
        """Connect to the next address; without one, `failure` is the end."""
        self._close_socket()
        while self._left:
            family, kind, protocol, _, place = self._left.popleft()
            try:
                self._socket = self._new_socket(family, kind, protocol)
                code = self._socket.connect_ex(place)
                if code not in _IN_PROGRESS:
                    raise OSError(code, os.strerror(code))
                self._watch(self._socket, EVENT_WRITE, self._connecting)
                return
            except OSError as error:
                failure = error
                self._close_socket()
        self._lose(connect_failure(failure, self._address))

    def _new_socket(self, family: int, kind: int, protocol: int) -> socket.socket:
        config = self._config
        one = socket.socket(family, kind, protocol)
        try:
            one.setblocking(False)
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, config.bool("socket.nagle.disable"))
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, config.bool("socket.keepalive.enable"))
            for name, option in (("send", socket.SO_SNDBUF), ("receive", socket.SO_RCVBUF)):
                size = config.int(f"socket.{name}.buffer.bytes")
                if size > 0:
                    one.setsockopt(socket.SOL_SOCKET, option, size)
        except BaseException:
            one.close()
            raise
        return one

    def _connecting(self, _: int) -> None:
        assert self._socket is not None
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            kind = ConnectionRefusedError if code == errno.ECONNREFUSED else OSError
            self._try_next(kind(code, os.strerror(code)))
            return
        if self._tls is None:
            self._opened()
            return
        plain = self._socket
        self._watch(plain, 0, None)
        try:
            self._socket = self._tls.wrap_socket(
                plain, server_hostname=self._address.host, do_handshake_on_connect=False, suppress_ragged_eofs=False
            )
        except (OSError, ValueError) as error:
            self._lose(connect_failure(error, self._address))
            return
        self._handshake(0)

    def _handshake(self, _: int) -> None:
        assert isinstance(self._socket, ssl.SSLSocket)
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._watch(self._socket, EVENT_READ, self._handshake)
        except ssl.SSLWantWriteError:
            self._watch(self._socket, EVENT_WRITE, self._handshake)
        except (OSError, ValueError) as error:
            self._lose(connect_failure(error, self._address))
        else:
            self._opened()

    def _opened(self) -> None:
        assert self._socket is not None
        self._is_open = True
        self._watch(self._socket, EVENT_READ, self._ready)
        self._receiver.connected()

    # ---- open

    def _ready(self, events: int) -> None:
        if events & EVENT_WRITE:
            self._send()
        if events & EVENT_READ and self._is_open:
            self._receive()

    def _receive(self) -> None:
        """TLS may hold bytes that the system does not know of, so there it is read until there is nothing."""
        is_tls = self._tls is not None
        for _ in range(READS_MAX):
            sock = self._socket
            if sock is None:
                return
            room = self._receiver.room()
            try:
                count = sock.recv_into(room)
            except _NOT_NOW:
                return
            except OSError as error:
                self._lose(connection_failure(error, self._address))
                return
            if count == 0:
                self._lose(connection_failure(None, self._address))
                return
            is_short = count < len(room)
            self._receiver.received(count)
            if is_short and not is_tls:
                return
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            self._call_soon(self._receive)

    def write(self, parts: Sequence[Buffer]) -> None:
        waiting = bool(self._out)
        self._out.extend(memoryview(part).cast("B") for part in parts if len(part))
        if not waiting and self._is_open:
            self._send()

    def _send(self) -> None:
        sock = self._socket
        if sock is None:
            return
        try:
            while self._out:
                self._sent(self._send_some(sock))
        except _NOT_NOW:
            self._watch(sock, EVENT_READ | EVENT_WRITE, self._ready)
        except OSError as error:
            # Not from within the call that writes. What the broker still had to say is lost with it.
            failure = connection_failure(error, self._address)
            self._call_soon(lambda: self._lose(failure))
        else:
            self._watch(sock, EVENT_READ, self._ready)

    def _send_some(self, sock: socket.socket) -> int:
        if self._tls is None:
            return sock.sendmsg([self._out[place] for place in range(min(len(self._out), PARTS_MAX))])
        if len(self._out) > 1 and len(self._out[0]) < TLS_WRITE_BYTES:
            # One TLS record for a header and what follows it.
            first, second = self._out.popleft(), self._out.popleft()
            taken = second[:TLS_WRITE_BYTES]
            if len(second) > len(taken):
                self._out.appendleft(second[len(taken) :])
            self._out.appendleft(memoryview(bytes(first) + bytes(taken)))
        return sock.send(self._out[0])

    def _sent(self, count: int) -> None:
        while count:
            first = self._out[0]
            if count < len(first):
                self._out[0] = first[count:]
                return
            count -= len(first)
            self._out.popleft()

    # ---- the end

    def _lose(self, error: ClientError) -> None:
        if not self._is_over:
            self.abort()
            self._receiver.lost(error)

    def abort(self) -> None:
        self._is_over = True
        self._is_open = False
        self._left.clear()
        self._out.clear()
        self._close_socket()

    def _close_socket(self) -> None:
        sock, self._socket = self._socket, None
        if sock is not None:
            self._watch(sock, 0, None)
            sock.close()
