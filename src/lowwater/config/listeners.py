"""Addresses as `listeners` and `advertised.listeners` write them: NAME://host:port."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lowwater.config.setting import Check, Value
from lowwater.errors import ConfigError

_LISTENER = re.compile(r"([A-Z][A-Z0-9_]*)://(?:\[([0-9a-fA-F:.%]+)\]|([^\[\]:/?#\s]*)):(\d{1,5})")
PORT_MAX = 65535
CONTROLLER = "CONTROLLER"


@dataclass(frozen=True, slots=True)
class ListenerAddress:
    """`host` is empty for every interface, `port` 0 for a free one."""

    name: str
    host: str
    port: int


def parse_listener(text: str) -> ListenerAddress:
    match = _LISTENER.fullmatch(text)
    if match is None or int(match[4]) > PORT_MAX:
        raise ConfigError(f"{text!r} is not an address such as PLAINTEXT://127.0.0.1:9092")
    return ListenerAddress(match[1], match[2] or match[3], int(match[4]))


def listener_text(name: str, host: str, port: int) -> str:
    return f"{name}://[{host}]:{port}" if ":" in host else f"{name}://{host}:{port}"


def client_listener(value: tuple[str, ...]) -> ListenerAddress:
    """The one of these that is for clients. Kafka's own files also name one of the controller, which is not needed."""
    [found] = [address for address in map(parse_listener, value) if address.name != CONTROLLER]
    return found


def _is_one_listener(value: Value) -> bool:
    assert isinstance(value, tuple)
    try:
        return client_listener(value).name == "PLAINTEXT"
    except (ConfigError, ValueError):
        return False


ONE_LISTENER = Check("one address such as PLAINTEXT://127.0.0.1:9092 or PLAINTEXT://[::1]:9092", _is_one_listener)
