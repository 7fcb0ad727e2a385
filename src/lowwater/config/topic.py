"""What holds for one topic: its own settings over those of the broker."""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.config.broker import BrokerConfig, Source, SourcedValue, unknown_setting
from lowwater.config.setting import Value, value_text
from lowwater.config.topic_settings import TOPIC_SETTING
from lowwater.config.typed_values import TypedValues
from lowwater.errors import ConfigError


class TopicConfig(TypedValues):
    """Immutable; topics with equal settings can share one."""

    __slots__ = ("_broker", "_values", "overrides")

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        self._broker = broker
        self.overrides = dict(overrides)
        self._values: dict[str, Value | None] = {}
        for name, setting in TOPIC_SETTING.items():
            if name in overrides:
                self._values[name] = setting.parse(overrides[name])
            elif setting.synonyms:
                self._values[name] = broker.first_of(setting.synonyms)
            else:
                self._values[name] = setting.default

    def value(self, name: str) -> Value | None:
        return self._values[name]

    def text(self, name: str) -> str | None:
        return value_text(self._values[name])

    def source(self, name: str) -> Source:
        """Where the value in force comes from."""
        sources = self.sources(name)
        return sources[0].source if sources else Source.DEFAULT

    def sources(self, name: str) -> list[SourcedValue]:
        """Every place that gives the setting a value, the one in force first."""
        setting = TOPIC_SETTING[name]
        own = [SourcedValue(name, self.text(name) or "", Source.TOPIC)] if name in self.overrides else []
        return own + (self._broker.sources(setting) if setting.synonyms else [])


def check_topic_settings(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """ConfigError when a topic cannot have these settings, alone or together."""
    for name in overrides:
        if name not in TOPIC_SETTING:
            raise ConfigError(unknown_setting(name, TOPIC_SETTING))
    config = TopicConfig(broker, overrides)
    least, most = config.int("min.compaction.lag.ms"), config.int("max.compaction.lag.ms")
    if least > most:
        raise ConfigError(f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}")
