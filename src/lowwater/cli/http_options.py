"""Where the dashboard listens and who may see it: options that `broker` and `dashboard` share.

Without the HTTP packages: a broker serves HTTP from another process.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lowwater.errors import ConfigError

if TYPE_CHECKING:
    from lowwater.broker.broker import Endpoint

logger = logging.getLogger("lowwater")

PORT = 8080
PASSWORD_ENV = "LOWWATER_HTTP_PASSWORD"
F = TypeVar("F", bound=Callable[..., Any])


def http_options(command: F) -> F:
    """Add --http-password-file and --allow-host."""
    for option in (
        click.option(
            "--allow-host",
            multiple=True,
            metavar="NAME",
            help="A further name that browsers may reach the dashboard by. Repeatable.",
        ),
        click.option(
            "--http-password-file",
            metavar="FILE",
            help=f"The password of the dashboard, in a file; needed beyond loopback.  [default: ${PASSWORD_ENV}]",
        ),
    ):
        command = option(command)
    return command


def read_password(path: str | None) -> str | None:
    """From the file, or else the environment; None when there is neither."""
    if path is None:
        return os.environ.get(PASSWORD_ENV) or None
    try:
        password = Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigError(f"cannot read --http-password-file {path}: {error.strerror}") from error
    if not password:
        raise ConfigError(f"--http-password-file {path} is empty")
    return password


@dataclass(frozen=True, slots=True)
class HttpWish:
    """`port` None: the usual one, if it is free."""

    host: str
    port: int | None
    password: str | None = field(repr=False)
    allowed: tuple[str, ...] = ()

    def bind(self) -> socket.socket | None:
        """A listening socket; None when the usual port is taken and nobody asked for it by name."""
        require_login(self.host, self.password)
        try:
            return listen(self.host, PORT if self.port is None else self.port)
        except OSError as error:
            if self.port is not None:
                raise ConfigError(f"cannot listen on --http-port {self.port}: {error.strerror or error}") from error
            logger.warning(
                "port %d is taken, so there is no dashboard; --http-port 0 takes a free one, --no-http asks for none",
                PORT,
            )
            return None

    def settings(self, broker: Endpoint) -> dict[str, Any]:
        return {
            "client": {"bootstrap.servers": f"{broker.host}:{broker.port}"},
            "host": self.host,
            "password": self.password,
            "allowed_hosts": list(self.allowed),
        }

    @staticmethod
    def url(listening: socket.socket) -> str:
        return url_of(listening)


def require_login(host: str, password: str | None) -> None:
    """ConfigError when others could reach it without a login."""
    if not _is_loopback(host) and not password:
        raise ConfigError(
            f"listening on {host}, beyond this machine, needs a password: set {PASSWORD_ENV} or "
            "--http-password-file, or listen on 127.0.0.1"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """OSError when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)
    except OSError:
        listening.close()
        raise
    return listening


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
