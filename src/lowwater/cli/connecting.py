"""How every command finds its brokers: -b, -X and -F, and what it says when it cannot.

@connection_options
def command(connection: Connection) -> None:
    with connection.open() as connected:
        topics = connected.run(connected.cluster.all_topics())
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lowwater.cli.printing import tell
from lowwater.cli.settings_file import OURS, read_settings_file, usual_file
from lowwater.errors import ConfigError

if TYPE_CHECKING:  # loaded when something is asked of a broker, so that --help is quick
    from lowwater.client.blocking import BlockingDriver
    from lowwater.client.cluster import Cluster
    from lowwater.client.config import Address, ClientConfig
    from lowwater.client.errors import ClientError
    from lowwater.client.network import Network

T = TypeVar("T")

BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "LOWWATER_BOOTSTRAP"
# Somebody waits at the terminal: what does not work soon is told soon.
PATIENCE = {
    "default.api.timeout.ms": "15000",
    "socket.connection.setup.timeout.ms": "5000",
    "topic.metadata.propagation.max.ms": "1000",
    "client.id": "lowwater-cli",
}
FIRST_CONTACT_MS = 1_500


@dataclass(frozen=True, slots=True)
class Connected:
    """A client for the length of one command."""

    config: ClientConfig
    driver: BlockingDriver
    network: Network
    cluster: Cluster

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_ms: float | None = None) -> T:
        return self.driver.run(coroutine, timeout_ms)


@dataclass(frozen=True, slots=True)
class Connection:
    """What the command line and the settings file say of the cluster."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def config(self, defaults: Mapping[str, str] = PATIENCE) -> ClientConfig:
        """click.UsageError for what is not a setting; settings without meaning here are told on stderr."""
        from lowwater.client.config import ClientConfig

        with warnings.catch_warnings(record=True) as ignored:
            warnings.simplefilter("always")
            try:
                config = ClientConfig({"bootstrap.servers": BOOTSTRAP, **defaults, **self.settings})
                _ = config.bootstrap
            except ConfigError as error:
                raise click.UsageError(str(error)) from None
        for warning in ignored:
            tell(warning.message)
        return config

    def client_settings(self, defaults: Mapping[str, str] = PATIENCE) -> dict[str, str]:
        """What a client is made from, without what has no meaning here, which `config` has told."""
        from lowwater.client.settings import IGNORED

        settings = {"bootstrap.servers": BOOTSTRAP, **defaults, **self.settings}
        return {name: value for name, value in settings.items() if name not in IGNORED}

    @contextlib.contextmanager
    def open(
        self, defaults: Mapping[str, str] = PATIENCE, first_contact_ms: float = FIRST_CONTACT_MS
    ) -> Iterator[Connected]:
        """A client that has reached a broker; ClientError, after a few seconds, when none is there."""
        from lowwater.client.blocking import BlockingDriver
        from lowwater.client.cluster import Cluster
        from lowwater.client.errors import ClientError
        from lowwater.client.network import Network

        config = self.config(defaults)
        driver = BlockingDriver(config)
        network = Network(config, driver)
        try:
            connected = Connected(config, driver, network, Cluster(network))
            driver.run(_reach(connected.cluster, first_contact_ms))
            yield connected
        except ClientError as error:
            error.advice = way_out(error, config, network.nodes)
            raise
        finally:
            network.close()
            driver.close()


async def _reach(cluster: Cluster, first_contact_ms: float) -> None:
    """Whoever is slow has the usual time; where nobody listens, a few tries tell."""
    from lowwater.client.errors import ConnectError
    from lowwater.wire.messages import ApiVersionsRequest

    began_ms = cluster.network.driver.monotonic_ms()

    async def attempt(left_ms: float) -> None:
        try:
            await cluster.network.ask_any(ApiVersionsRequest(), versions=(0, 2), timeout_ms=left_ms)
        except ConnectError as error:
            error.retriable = cluster.network.driver.monotonic_ms() - began_ms < first_contact_ms
            raise

    await cluster.retry.run(attempt)


def way_out(error: ClientError, config: ClientConfig, nodes: Mapping[int, Address]) -> str:
    """What to do about an error, in the words of the command line; the error's own advice where there is no better."""
    from lowwater.client.errors import ConnectError, DisconnectedError, ProtocolError, TlsError

    told = next((str(each) for each in nodes.values() if error.what.startswith(str(each))), None)
    if isinstance(error, ConnectError) and told is not None and told not in map(str, config.bootstrap):
        return f"{told} is where a broker tells its clients to go: its advertised.listeners must suit this machine"
    if isinstance(error, ConnectError) and "refuses" in error.what:
        return "`lowwater broker` starts a broker; -b says where another one is"
    if isinstance(error, TlsError) and config.maybe_str("ssl.ca.location") is None and "certificate" in error.what:
        return "-X ssl.ca.location=FILE says whom to trust"
    if "did not let us in" in error.what or "speaks HTTP" in error.what or "speaks SSH" in error.what:
        return "-b has to name the port of a Kafka broker"
    if isinstance(error, ConnectError | DisconnectedError | ProtocolError | TlsError) and "security" in error.advice:
        return _OTHER_PROTOCOL[config.uses_tls]
    return error.advice


_OTHER_PROTOCOL = {
    False: "perhaps this port wants TLS: try -X security.protocol=SSL, or SASL_SSL with a login",
    True: "perhaps this port is without TLS: try -X security.protocol=PLAINTEXT",
}


def connection_of(
    bootstrap: str | None, properties: Sequence[str], file: str | None, usual_files: Sequence[str] = OURS
) -> Connection:
    """-b wins over -X, -X over the file of -F, that over LOWWATER_BOOTSTRAP, and that over the usual file.

    click.UsageError for what cannot be.
    """
    try:
        path = usual_file(usual_files) if file is None else None
        settings = {} if path is None else _canonical(read_settings_file(path))
        if everywhere := os.environ.get(BOOTSTRAP_VARIABLE):
            settings["bootstrap.servers"] = everywhere
        settings |= {} if file is None else _canonical(read_settings_file(file))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    settings |= _canonical(dict(_property(text) for text in properties))
    if bootstrap is not None:
        settings["bootstrap.servers"] = bootstrap
    return Connection(settings)


def connection_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds -b, -X and -F to a command, which gets them as `connection`."""

    @functools.wraps(command)
    def with_connection(
        *args: Any, bootstrap: str | None, properties: tuple[str, ...], settings_file: str | None, **others: Any
    ) -> T:
        return command(*args, connection=connection_of(bootstrap, properties, settings_file), **others)

    for option in reversed(_OPTIONS):
        with_connection = option(with_connection)
    return with_connection


_OPTIONS = (
    click.option(
        "-b",
        "--bootstrap",
        metavar="HOST:PORT,…",
        help=f"Where a broker is.  [default: $LOWWATER_BOOTSTRAP, or {BOOTSTRAP}]",
    ),
    click.option(
        "-X",
        "properties",
        metavar="NAME=VALUE",
        multiple=True,
        help="A client setting, as librdkafka or Kafka name it: security.protocol=SSL. Repeatable.",
    ),
    click.option(
        "-F",
        "settings_file",
        metavar="FILE",
        help="A file of client settings, as name=value.  [default: $LOWWATER_CONFIG, or ~/.config/lowwater.conf]",
    ),
)


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"-X takes NAME=VALUE, not {text!r}")
    return name.strip(), value.strip()


def _canonical(settings: Mapping[str, str]) -> dict[str, str]:
    """By the one name that each setting has here, so that the same in two places is not given twice."""
    return {_name(name): value for name, value in settings.items()}


def _name(name: str) -> str:
    from lowwater.client.config import CLIENT_SETTING
    from lowwater.client.settings import ALIASES, IGNORED

    if not (name in CLIENT_SETTING or name in ALIASES or name in IGNORED):
        name = name.removeprefix("topic.")  # kcat's way to say that a setting is one of topics
    return ALIASES.get(name, name)
