"""What a client was told, by the names that Kafka's and librdkafka's clients use."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from lowwater.client.data_settings import GROUP_MEMBER_SETTINGS, PRODUCING_SETTINGS, READING_SETTINGS
from lowwater.client.settings import ALIASES, CALLABLES, CONNECTION_SETTINGS, IGNORED, REFUSED, SECURITY_SETTINGS
from lowwater.config.setting import Kind, Setting, Value
from lowwater.config.typed_values import TypedValues
from lowwater.errors import ConfigError

CLIENT_SETTINGS = (
    *CONNECTION_SETTINGS,
    *SECURITY_SETTINGS,
    *READING_SETTINGS,
    *GROUP_MEMBER_SETTINGS,
    *PRODUCING_SETTINGS,
)
CLIENT_SETTING = {setting.name: setting for setting in CLIENT_SETTINGS}
PORT_DEFAULT = 9092
# Words that librdkafka and Java write in different ways.
_UPPER = frozenset({"security.protocol", "sasl.mechanism"})
_LOWER = frozenset({"ssl.endpoint.identification.algorithm"})

OauthCallback: TypeAlias = Callable[[str], Any]
"""Given sasl.oauthbearer.config; gives (token, when it ends in s since the epoch[, principal, extensions])."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ClientConfig(TypedValues):
    """Immutable. A name that is not known is an error; one that means nothing here is told and left alone."""

    __slots__ = ("_given", "_values", "oauth_callback")

    def __init__(self, given: Mapping[str, object]) -> None:
        self._values: dict[str, Value | None] = {setting.name: setting.default for setting in CLIENT_SETTINGS}
        self._given: list[str] = []
        self.oauth_callback: OauthCallback | None = None
        for name, value in given.items():
            self._take(name, value)
        _check_login(self)

    def _take(self, name: str, value: object) -> None:
        canonical = ALIASES.get(name, name)
        if name in REFUSED:
            raise ConfigError(f"{name} cannot be used: {REFUSED[name]}")
        if name in IGNORED:
            warnings.warn(f"the setting {name} has no meaning here and is ignored", stacklevel=4)
        elif name in CALLABLES:
            if not callable(value):
                raise ConfigError(f"{name} has to be a function")
            self.oauth_callback = value
        elif canonical not in CLIENT_SETTING:
            raise ConfigError(_unknown(name))
        elif canonical in self._given:
            raise ConfigError(f"{canonical} is given twice, once as {name}" if name != canonical else f"{name} twice")
        else:
            self._values[canonical] = _parsed(CLIENT_SETTING[canonical], value)
            self._given.append(canonical)

    def value(self, name: str) -> Value | None:
        return self._values[name]

    def is_given(self, name: str) -> bool:
        """Whether the user said it, or it is the default."""
        return name in self._given

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """ConfigError when there is none, or one that cannot be read."""
        servers = self.list("bootstrap.servers")
        if not servers:
            raise ConfigError("bootstrap.servers is not set; it says where a broker is, as host:port")
        return tuple(parse_address(server) for server in servers)

    @property
    def uses_tls(self) -> bool:
        return self.str("security.protocol").endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.str("security.protocol").startswith("SASL")

    @property
    def commits_by_itself(self) -> bool:
        """Whether a consumer commits what was returned without being told to."""
        return self.bool("enable.auto.commit") and self.bool("enable.auto.offset.store")

    def __repr__(self) -> str:
        shown = (f"{name!r}: {_shown(CLIENT_SETTING[name], self._values[name])}" for name in self._given)
        return f"ClientConfig({{{', '.join(shown)}}})"


def parse_address(text: str) -> Address:
    """`host:port`, `host` with Kafka's usual port, `[v6 address]:port`; a protocol in front (SSL://) is left out."""
    rest = text.partition("://")[2] if "://" in text else text
    host, colon, port = rest.rpartition(":")
    if not colon or (rest.startswith("[") and rest.endswith("]")):
        host, port = rest, str(PORT_DEFAULT)
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise ConfigError(f"bootstrap.servers has {text!r}, which is not host:port")
    return Address(host, int(port))


def _parsed(setting: Setting, value: object) -> Value | None:
    if value is None:
        return setting.default
    if isinstance(value, list | tuple) and setting.kind is Kind.LIST:
        return tuple(str(part) for part in value)
    if not isinstance(value, str | int | float):
        raise ConfigError(f"{setting.name} has to be text, a number or true/false, not {type(value).__name__}")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if setting.kind is Kind.PASSWORD:
        return text  # as it is: a space may be part of it
    if setting.name in _UPPER:
        text = text.upper()
    return setting.parse(text.lower() if setting.name in _LOWER else text)


def _check_login(config: ClientConfig) -> None:
    mechanism = config.maybe_str("sasl.mechanism")
    if not config.uses_sasl:
        if mechanism is not None or config.is_given("sasl.username"):
            raise ConfigError(
                "a login is given, but security.protocol is "
                f"{config.str('security.protocol')}: it has to be SASL_SSL, or SASL_PLAINTEXT to log in in clear"
            )
        return
    if mechanism is None:
        raise ConfigError("sasl.mechanism is not set; there are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER")
    if mechanism == "OAUTHBEARER":
        if config.oauth_callback is None and config.maybe_str("sasl.oauthbearer.token") is None:
            raise ConfigError("OAUTHBEARER needs oauth_cb or sasl.oauthbearer.token")
    elif config.maybe_str("sasl.username") is None or config.maybe_str("sasl.password") is None:
        raise ConfigError(f"{mechanism} needs sasl.username and sasl.password")


def _unknown(name: str) -> str:
    import difflib  # only needed once something is wrong already

    known = [*CLIENT_SETTING, *ALIASES, *CALLABLES]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"unknown setting {name!r}" + (f"; did you mean {close[0]}?" if close else "")


def _shown(setting: Setting, value: Value | None) -> str:
    return "[hidden]" if setting.sensitive else repr(value)
