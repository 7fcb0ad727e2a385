"""Rules by which settings of topics and brokers may be altered while the broker runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING

from lowwater.broker.metadata_records import BrokerConfigured, GroupConfigured, Record, TopicConfigured
from lowwater.broker.topics import Topics
from lowwater.config import (
    BROKER_SETTING,
    GROUP_SETTING,
    TOPIC_SETTING,
    Kind,
    Update,
    check_group_settings,
    value_text,
)
from lowwater.config.setting import split_list
from lowwater.errors import ApiError, ConfigError, ErrorCode
from lowwater.types import topic_name_problem

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

ALL_BROKERS = ""
VALUE_BYTES_MAX = 2**15 - 1  # of a string on the wire, so that every value can be told


class ResourceType(IntEnum):
    """What has settings, with the numbers of the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @staticmethod
    def of(number: int, *allowed: ResourceType) -> ResourceType:
        """ApiError unless the number stands for one of those allowed."""
        for kind in allowed:
            if kind == number:
                return kind
        raise ApiError(ErrorCode.INVALID_REQUEST, f"resources of type {number} have no settings here")


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def repeated_resources(named: Iterable[tuple[int, str]]) -> set[tuple[int, str]]:
    return {resource for resource, count in Counter(named).items() if count > 1}


def require_once(names: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"settings are named more than once: {', '.join(repeated)}")


def require_values(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Each name once, each with a value."""
    listed = list(configs)
    require_once(name for name, _ in listed)
    values = {name: value for name, value in listed if value is not None}
    if len(values) < len(listed):
        missing = [name for name, value in listed if value is None]
        raise ApiError(ErrorCode.INVALID_REQUEST, f"settings without a value: {', '.join(missing)}")
    return values


def require_node(broker: Broker, name: str) -> None:
    if name != str(broker.node_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"this is broker {broker.node_id}, not {name!r}")


def current(broker: Broker, kind: ResourceType, name: str) -> Mapping[str, str]:
    """The settings that the resource has of its own. ApiError when there is no such resource."""
    if kind is ResourceType.TOPIC:
        return _current_of_topic(broker.topics, name)
    if kind is ResourceType.GROUP:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "defaults of groups are settings of the broker")
        return broker.topics.group_configs.get(name, {})
    if name != ALL_BROKERS:
        require_node(broker, name)
    return broker.topics.altered(name)


def _current_of_topic(topics: Topics, name: str) -> Mapping[str, str]:
    topic = topics.get(name)
    if topic is not None:
        return topic.config.overrides
    if not name:
        raise ApiError(ErrorCode.INVALID_REQUEST, "defaults of topics are settings of the broker")
    problem = topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")


def incremented(
    kind: ResourceType, configs: Mapping[str, str], changes: Iterable[tuple[str, int, str | None]]
) -> dict[str, str]:
    """`configs` with (name, operation, value) applied."""
    result = dict(configs)
    for name, operation, value in changes:
        if operation == Operation.DELETE:
            result.pop(name, None)
        elif value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"settings without a value: {name}")
        elif operation == Operation.SET:
            result[name] = value
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            result[name] = _list_changed(kind, name, result.get(name), value, append=operation == Operation.APPEND)
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"operation {operation} is not known")
    return result


def _list_changed(kind: ResourceType, name: str, text: str | None, change: str, *, append: bool) -> str:
    tables = {ResourceType.TOPIC: TOPIC_SETTING, ResourceType.GROUP: GROUP_SETTING}
    setting = tables.get(kind, BROKER_SETTING).get(name)
    if setting is None or setting.kind is not Kind.LIST:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is not a list: it can be set or deleted only")
    old = split_list(text if text is not None else value_text(setting.default) or "")
    named = split_list(change)
    new = ",".join(dict.fromkeys([*old, *named]) if append else (one for one in old if one not in named))
    if len(new.encode()) > VALUE_BYTES_MAX:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} would be longer than {VALUE_BYTES_MAX} bytes")
    return new


def altered(broker: Broker, kind: ResourceType, name: str, configs: dict[str, str]) -> Record:
    """The record that gives an existing resource these settings. ApiError when it may not have them."""
    if kind is ResourceType.BROKER:
        _check_broker_configs(name, configs)
        return BrokerConfigured(name, configs)
    if kind is ResourceType.GROUP:
        _check_group_configs(broker, configs)
        return GroupConfigured(name, configs)
    topic = broker.topics.get(name)
    assert topic is not None, "looked up before"
    broker.topics.check_configs(configs)
    return TopicConfigured(topic.id, configs)


def _check_group_configs(broker: Broker, configs: Mapping[str, str]) -> None:
    try:
        check_group_settings(broker.config, configs)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _check_broker_configs(node: str, configs: Mapping[str, str]) -> None:
    """Names outside the table are kept for whoever set them, as Kafka keeps the settings of its plugins."""
    known = [BROKER_SETTING[name] for name in configs if name in BROKER_SETTING]
    fixed = [setting.name for setting in known if not setting.dynamic]
    if fixed:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"only a restart changes {', '.join(fixed)}")
    own = [setting.name for setting in known if setting.update is Update.PER_BROKER]
    if own and node == ALL_BROKERS:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"can be altered for one broker only: {', '.join(own)}")
    try:
        for setting in known:
            setting.parse(configs[setting.name])
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from error
