"""Options that begin with `kafka.`: settings of the clients, as Java's users write them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

from lowwater.client.config import CLIENT_SETTING, ClientConfig
from lowwater.client.settings import ALIASES, IGNORED
from lowwater.errors import ConfigError
from lowwater.spark.kafka_logins import KERBEROS, MECHANISM, take_login
from lowwater.spark.kafka_stores import take_stores
from lowwater.spark.option_table import OptionError

PREFIX = "kafka."
HIDDEN = "[hidden]"
_BY_COLUMNS = "keys and values are columns of bytes, which DataFrame operations or the option decode turn into others"
_BYTES_WRITTEN = "keys and values are written as the bytes or the text that their columns have"
_TRANSACTIONS = "is not supported: the sink makes its transactions itself, by the option exactlyOnce"
_PARTITIONS = (
    "is not supported: no Java class can be run here. A row goes where its column `partition` says, else by its key, "
    "to the same partition that Java's clients choose"
)
SOURCE_REFUSALS = {
    "auto.offset.reset": "is not supported. Instead set the source option 'startingOffsets' to 'earliest' or 'latest' "
    "to say where to start, or 'start'; which offsets are read is kept in the checkpoint, so that no data is missed "
    "when new topics or partitions come",
    "key.deserializer": f"is not supported as {_BY_COLUMNS}",
    "value.deserializer": f"is not supported as {_BY_COLUMNS}",
    "enable.auto.commit": "is not supported: offsets are committed to a 'group' when the checkpoint has them",
    "interceptor.classes": "is not supported: nothing may come between the source and its records",
}
SINK_REFUSALS = {
    "key.serializer": f"is not supported as {_BYTES_WRITTEN}",
    "value.serializer": f"is not supported as {_BYTES_WRITTEN}",
    "transactional.id": _TRANSACTIONS,
    "transaction.two.phase.commit.enable": _TRANSACTIONS,
    "partitioner.class": _PARTITIONS,
}
# What would change whom a client trusts, or needs Java.
_NEVER = {
    "config.providers": "is not supported: values are taken as they are written",
    "security.providers": "is not supported: no Java class can be run here",
    "ssl.engine.factory.class": "is not supported: no Java class can be run here",
}
# Java's, besides those of IGNORED: how often it looks at what ours has no need to.
_NO_MEANING = frozenset(
    """
    internal.throw.on.fetch.stable.offset.unsupported sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    """.split()  # noqa: SIM905  a column of quotes would say no more
)
# Without a meaning for one of the two: a job hands the same options to its source and to its sink.
_OF_PRODUCERS = frozenset({"partitioner.class", "transactional.id", "transaction.two.phase.commit.enable"})
_LEVEL = {f"compression.{codec}.level": codec for codec in ("gzip", "lz4", "zstd")}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Names and values that ClientConfig takes, secrets among them; its text shows none."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = (f"{name!r}: {HIDDEN if is_secret(name) else repr(text)}" for name, text in self.settings.items())
        return f"ClientSettings({{{', '.join(shown)}}})"


def is_secret(name: str) -> bool:
    """Of a setting of the client; one that is not known might be."""
    setting = CLIENT_SETTING.get(ALIASES.get(name, name))
    return setting is None or setting.sensitive


def client_settings(
    given: Mapping[str, str], refusals: Mapping[str, str], defaults: Mapping[str, str]
) -> tuple[ClientSettings, tuple[str, ...]]:
    """From names without `kafka.`; and what is to be told the user. OptionError says what cannot be taken, and why."""
    for name, why in {**_NEVER, **refusals}.items():
        if name in given:
            raise OptionError(f"Kafka option '{name}' {why}")
    settings = dict(given)
    notes = _drop_unneeded(settings)
    _take_levels(settings)
    _take_partitioner(settings)
    notes += take_stores(settings)
    take_login(settings)
    settings = {**defaults, **settings}
    try:
        ClientConfig(settings)
    except ConfigError as error:
        raise OptionError(f"option {PREFIX}*: {error}") from None
    return ClientSettings(settings), tuple(notes)


def _drop_unneeded(settings: MutableMapping[str, str]) -> list[str]:
    unneeded = {name for name in settings if name in IGNORED or name in _NO_MEANING or name in _OF_PRODUCERS}
    if settings.get(MECHANISM, "").upper() not in ("", KERBEROS):
        unneeded |= {name for name in settings if name.startswith("sasl.kerberos.")}
    for name in unneeded:
        del settings[name]
    return [f"the option {PREFIX}{name} has no meaning here" for name in sorted(unneeded)]


def _take_levels(settings: MutableMapping[str, str]) -> None:
    """Java has a level for each codec, ours one for the codec that is chosen."""
    levels = {codec: settings.pop(name) for name, codec in _LEVEL.items() if name in settings}
    chosen = settings.get("compression.type", "none").lower()
    if chosen in levels:
        settings["compression.level"] = levels[chosen]


def _take_partitioner(settings: MutableMapping[str, str]) -> None:
    if settings.pop("partitioner.ignore.keys", "false").strip().lower() == "true":
        settings["partitioner"] = "random"
