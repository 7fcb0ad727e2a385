"""Options that begin with `kafka.`: settings of the clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lowwater.client.config import CLIENT_SETTING, ClientConfig
from lowwater.client.settings import ALIASES, IGNORED
from lowwater.errors import ConfigError
from lowwater.spark.option_table import OptionError

PREFIX = "kafka."
HIDDEN = "[hidden]"
_BY_COLUMNS = "keys and values are columns of bytes, which DataFrame operations or the option decode turn into others"
_BYTES_WRITTEN = "keys and values are written as the bytes or the text that their columns have"
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
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Names and values that ClientConfig takes, secrets among them; its text shows none."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = (f"{name!r}: {HIDDEN if is_secret(name) else repr(text)}" for name, text in self.settings.items())
        return f"ClientSettings({{{', '.join(shown)}}})"


def is_secret(name: str) -> bool:
    setting = CLIENT_SETTING.get(ALIASES.get(name, name))
    return setting is None or setting.sensitive


def client_settings(
    given: Mapping[str, str], refusals: Mapping[str, str], defaults: Mapping[str, str]
) -> tuple[ClientSettings, tuple[str, ...]]:
    """From names without `kafka.`; and what is to be told the user. OptionError says what cannot be taken, and why."""
    for name in given.keys() & refusals.keys():
        raise OptionError(f"Kafka option '{name}' {refusals[name]}")
    settings = {**defaults, **{name: text for name, text in given.items() if name not in IGNORED}}
    try:
        ClientConfig(settings)
    except ConfigError as error:
        raise OptionError(f"option {PREFIX}*: {error}") from None
    notes = tuple(f"the option {PREFIX}{name} has no meaning here" for name in sorted(given.keys() & IGNORED))
    return ClientSettings(settings), notes
