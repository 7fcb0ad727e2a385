"""DescribeConfigs v1-4: the settings of topics, brokers, loggers and groups, and where each value comes from.

An empty name of a broker asks for what was altered for all brokers. v3 adds types and documentation. Secrets are never
told, and a broker setting that is not in our table counts as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lowwater.broker import loggers
from lowwater.broker.config_changes import ALL_BROKERS, ResourceType, current, require_node
from lowwater.broker.router import RequestContext, handles
from lowwater.config import (
    BROKER_SETTING,
    BROKER_SETTINGS,
    GROUP_OWN_SETTINGS,
    TOPIC_SETTINGS,
    ConsumerGroupConfig,
    Setting,
    Source,
    SourcedValue,
    listener_text,
)
from lowwater.config.topic import OwnConfig
from lowwater.errors import ApiError, ErrorCode
from lowwater.types import topic_name_problem
from lowwater.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

LOGGER_SOURCE = 6
UNKNOWN_TYPE = 0


@handles(DescribeConfigsRequest)
def describe_configs(
    broker: Broker, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse:
    # One answer is far larger than its question: a resource named often is described once.
    asked = {(one.resource_type, one.resource_name): one for one in request.resources}
    return DescribeConfigsResponse(results=[_result(broker, one, request) for one in asked.values()])


def _result(
    broker: Broker, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name, configs=[]
    )
    try:
        described = _described(broker, resource)
    except ApiError as error:
        result.error_code, result.error_message = error.code, error.detail
        return result
    for config in described:
        if resource.configuration_keys and config.name not in resource.configuration_keys:
            continue
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation:
            config.documentation = None
        result.configs.append(config)
    return result


def _described(broker: Broker, resource: DescribeConfigsResource) -> Iterable[DescribeConfigsResourceResult]:
    kind = ResourceType.of(
        resource.resource_type,
        ResourceType.TOPIC,
        ResourceType.BROKER,
        ResourceType.BROKER_LOGGER,
        ResourceType.GROUP,
    )
    if kind is ResourceType.TOPIC:
        return _topic(broker, resource.resource_name)
    if kind is ResourceType.BROKER_LOGGER:
        require_node(broker, resource.resource_name)
        return map(_logger, *zip(*loggers.levels().items(), strict=True))
    altered = current(broker, kind, resource.resource_name)
    if kind is ResourceType.GROUP:
        return _own(ConsumerGroupConfig(broker.config, altered), GROUP_OWN_SETTINGS)
    if resource.resource_name == ALL_BROKERS:
        return [_altered_for_all(name, text) for name, text in altered.items()]
    return _broker(broker)


def _topic(broker: Broker, name: str) -> list[DescribeConfigsResourceResult]:
    problem = topic_name_problem(name)
    if problem is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    topic = broker.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name!r}")
    return _own(topic.config, TOPIC_SETTINGS)


def _own(config: OwnConfig, settings: Iterable[Setting]) -> list[DescribeConfigsResourceResult]:
    return [
        _entry(setting, config.text(setting.name), config.sources(setting.name), read_only=False)
        for setting in settings
    ]


def _broker(broker: Broker) -> list[DescribeConfigsResourceResult]:
    config = broker.config
    # These came as arguments, for the most part; clients are told what holds all the same.
    arguments = {
        "log.dirs": broker.data_dir,
        "advertised.listeners": listener_text("PLAINTEXT", broker.advertised.host, broker.advertised.port),
    }
    known = [
        _entry(setting, config.text(setting.name), config.sources(setting), read_only=not setting.dynamic)
        if setting.name not in arguments
        else _argument(setting, arguments[setting.name])
        for setting in BROKER_SETTINGS
    ]
    unknown = [
        _foreign(name, source)
        for source in (Source.DYNAMIC_BROKER, Source.DYNAMIC_DEFAULT)
        for name in config.layer(source)
        if name not in BROKER_SETTING
    ]
    return known + unknown


def _altered_for_all(name: str, text: str) -> DescribeConfigsResourceResult:
    setting = BROKER_SETTING.get(name)
    if setting is None:
        return _foreign(name, Source.DYNAMIC_DEFAULT)
    return _entry(setting, text, [SourcedValue(name, text, Source.DYNAMIC_DEFAULT)], read_only=False)


def _entry(
    setting: Setting, text: str | None, sources: list[SourcedValue], *, read_only: bool
) -> DescribeConfigsResourceResult:
    hidden = setting.sensitive
    return DescribeConfigsResourceResult(
        name=setting.name,
        value=None if hidden else text,
        read_only=read_only,
        config_source=sources[0].source if sources else Source.DEFAULT,
        is_sensitive=hidden,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=None if hidden else one.text, source=one.source)
            for one in sources
        ],
        config_type=setting.kind,
        documentation=setting.help,
    )


def _argument(setting: Setting, text: str) -> DescribeConfigsResourceResult:
    return _entry(setting, text, [SourcedValue(setting.name, text, Source.STATIC)], read_only=True)


def _foreign(name: str, source: Source) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=None,
        read_only=True,
        config_source=source,
        is_sensitive=True,
        synonyms=[DescribeConfigsSynonym(name=name, value=None, source=source)],
        config_type=UNKNOWN_TYPE,
    )


def _logger(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name, value=level, read_only=False, config_source=LOGGER_SOURCE, is_sensitive=False, synonyms=[]
    )
