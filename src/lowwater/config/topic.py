"""What holds for one topic or one group: its own settings over those of the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from lowwater.config.broker import BrokerConfig, Source, SourcedValue, unknown_setting
from lowwater.config.group_settings import GROUP_SETTING
from lowwater.config.setting import Setting, Value, value_text
from lowwater.config.topic_settings import TOPIC_SETTING
from lowwater.config.typed_values import TypedValues
from lowwater.errors import ConfigError


class OwnConfig(TypedValues):
    """Immutable; whoever has equal settings can share one."""

    __slots__ = ("_broker", "_values", "overrides")

    TABLE: ClassVar[Mapping[str, Setting]]
    SOURCE: ClassVar[Source]

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        self._broker = broker
        self.overrides = dict(overrides)
        self._values: dict[str, Value | None] = {}
        for name, setting in self.TABLE.items():
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
        setting = self.TABLE[name]
        own = [SourcedValue(name, self.text(name) or "", self.SOURCE)] if name in self.overrides else []
        return own + (self._broker.sources(setting) if setting.synonyms else [])


class TopicConfig(OwnConfig):
    """Of one topic."""

    __slots__ = ()

    TABLE = TOPIC_SETTING
    SOURCE = Source.TOPIC


class ConsumerGroupConfig(OwnConfig):
    """Of one consumer group."""

    __slots__ = ()

    TABLE = GROUP_SETTING
    SOURCE = Source.GROUP


def check_topic_settings(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """ConfigError when a topic cannot have these settings, alone or together."""
    for name in overrides:
        if name not in TOPIC_SETTING:
            raise ConfigError(unknown_setting(name, TOPIC_SETTING))
    config = TopicConfig(broker, overrides)
    least, most = config.int("min.compaction.lag.ms"), config.int("max.compaction.lag.ms")
    if least > most:
        raise ConfigError(f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}")


def check_group_settings(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """ConfigError when a consumer group cannot have these settings: the broker's bound those of groups."""
    for name in overrides:
        if name not in GROUP_SETTING:
            raise ConfigError(unknown_setting(name, GROUP_SETTING))
    config = ConsumerGroupConfig(broker, overrides)
    for name in overrides:
        what = name.removeprefix("consumer.")
        lowest, highest = (f"group.consumer.{end}.{what}" for end in ("min", "max"))
        if not broker.int(lowest) <= config.int(name) <= broker.int(highest):
            raise ConfigError(f"{name}={config.int(name)} is outside what {lowest} and {highest} allow")
    interval_ms, timeout_ms = config.int("consumer.heartbeat.interval.ms"), config.int("consumer.session.timeout.ms")
    if interval_ms >= timeout_ms:
        raise ConfigError(f"a heartbeat every {interval_ms} ms is too seldom for a session of {timeout_ms} ms")
