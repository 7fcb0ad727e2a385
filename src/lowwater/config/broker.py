"""What one broker was told: the defaults, its file and command line, and what was altered while it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile

from lowwater.config.broker_settings import BROKER_SETTING
from lowwater.config.properties import parse_properties
from lowwater.config.setting import Setting, Synonym, Value, value_text
from lowwater.config.typed_values import TypedValues
from lowwater.errors import ConfigError


class Source(IntEnum):
    """Where a value comes from, with the numbers DescribeConfigs sends."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT = 3
    STATIC = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """One of the places that give a setting a value."""

    name: str
    text: str
    source: Source


# Pairs of settings of which the first must not be above the second.
IN_ORDER = (
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
)


class BrokerConfig(TypedValues):
    """Immutable. Later layers go first: altered for this broker, altered for all, told at start, default."""

    __slots__ = ("_layers", "_values")

    def __init__(
        self,
        static: Mapping[str, str],
        dynamic_default: Mapping[str, str] | None = None,
        dynamic_broker: Mapping[str, str] | None = None,
    ) -> None:
        self._layers: dict[Source, dict[str, str]] = {
            Source.DYNAMIC_BROKER: dict(dynamic_broker or {}),
            Source.DYNAMIC_DEFAULT: dict(dynamic_default or {}),
            Source.STATIC: dict(static),
        }
        self._values: dict[str, Value | None] = {name: s.default for name, s in BROKER_SETTING.items()}
        for layer in reversed(self._layers.values()):
            for name, text in layer.items():
                if name in BROKER_SETTING:
                    self._values[name] = BROKER_SETTING[name].parse(text)

    @staticmethod
    def load(file: str | None, overrides: Mapping[str, str]) -> BrokerConfig:
        """From the text of a properties file and `overrides`, which go first. ConfigError says what is wrong."""
        static = parse_properties(file) if file is not None else {}
        static.update(overrides)
        for name in static:
            if name not in BROKER_SETTING:
                raise ConfigError(unknown_setting(name, BROKER_SETTING))
        config = BrokerConfig(static)
        for lower, higher in IN_ORDER:
            if config.int(lower) > config.int(higher):
                raise ConfigError(f"{lower}={config.int(lower)} is above {higher}={config.int(higher)}")
        return config

    def without_effect(self) -> list[str]:
        """Settings that were given and change nothing here."""
        return [name for name in self._layers[Source.STATIC] if not BROKER_SETTING[name].acts]

    def altered(
        self,
        dynamic_default: Mapping[str, str],
        dynamic_broker: Mapping[str, str],
    ) -> BrokerConfig:
        """The same start, with other dynamic layers. Names that are not in the table are kept and mean nothing."""
        return BrokerConfig(self._layers[Source.STATIC], dynamic_default, dynamic_broker)

    def data_dir(self) -> str | None:
        """The data directory the settings name, if they do."""
        return next(iter((*self.list("log.dirs"), *self.list("log.dir"))), None)

    def layer(self, source: Source) -> Mapping[str, str]:
        return self._layers[source]

    def value(self, name: str) -> Value | None:
        return self._values[name]

    def text(self, name: str) -> str | None:
        return value_text(self._values[name])

    def first_of(self, synonyms: tuple[Synonym, ...]) -> Value | None:
        """The value of the first synonym that has one, in the unit of what it stands for."""
        for synonym in synonyms:
            value = self._values[synonym.name]
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                return value
            # -1 means unlimited in every unit.
            return value if value < 0 else value * synonym.factor
        return None

    def sources(self, setting: Setting) -> list[SourcedValue]:
        """Every place that gives `setting` a value, the one in force first.

        As Kafka does it, the list begins at the first place that has the leading name: an hours setting is only listed
        behind its ms setting.
        """
        names = [synonym.name for synonym in setting.synonyms] or [setting.name]
        found = [
            SourcedValue(name, _plain_text(name, layer[name]), source)
            for source, layer in self._layers.items()
            for name in names
            if name in layer
        ]
        found += self._defaults(names)
        return list(dropwhile(lambda sourced: sourced.name != names[0], found))

    def _defaults(self, names: list[str]) -> Iterator[SourcedValue]:
        for name in names:
            text = value_text(BROKER_SETTING[name].default) if name in BROKER_SETTING else None
            if text is not None:
                yield SourcedValue(name, text, Source.DEFAULT)


def _plain_text(name: str, text: str) -> str:
    """As the value would be written now: without the spaces it may have been given with."""
    return value_text(BROKER_SETTING[name].parse(text)) or ""


def unknown_setting(name: str, known: Mapping[str, Setting]) -> str:
    """A sentence that says so, with the names that look alike."""
    import difflib  # only needed once something is wrong already

    close = difflib.get_close_matches(name, known, n=3, cutoff=0.75)
    return f"unknown setting {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
