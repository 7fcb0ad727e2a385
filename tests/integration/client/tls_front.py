"""TLS in front of a broker that has none: ends it, and passes the bytes on."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading


class TlsFront:
    """Listens on localhost; `forward_to` says where the broker is."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._target: tuple[str, int] | None = None
        self.port: int = self._listener.getsockname()[1]
        self.versions: list[str | None] = []

    def forward_to(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._start(self._accept)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _start(self, work: object, *arguments: object) -> None:
        assert callable(work)
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._start(self._serve, connection)

    def _serve(self, plain: socket.socket) -> None:
        try:
            near = self._context.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        assert self._target is not None
        far = socket.create_connection(self._target)
        self._sockets += [near, far]
        self.versions.append(near.version())
        self._start(_copy, far, near)
        _copy(near, far)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
