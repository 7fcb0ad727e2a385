"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources. Codes are those of Apache Kafka 4.3."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from lowwater.wire.messages import alter_configs as replacing
from lowwater.wire.messages import incremental_alter_configs as incremental
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.messages.describe_configs import DescribeConfigsResource

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
OK = ErrorCode.NONE


@pytest.fixture
def node(node: Any) -> Any:
    node.ask(CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)]))
    return node


def describe(node: Any, kind: int, name: str, *keys: str, version: int = 4, **options: bool) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys) or None)
    (result,) = node.ask(DescribeConfigsRequest(resources=[resource], **options), version).results
    return result


def described(node: Any, kind: int, name: str, key: str) -> Any:
    (config,) = describe(node, kind, name, key, include_synonyms=True).configs
    return config


def value(node: Any, kind: int, name: str, key: str) -> str | None:
    text: str | None = described(node, kind, name, key).value
    return text


def change(node: Any, kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Any:
    configs = [
        incremental.AlterableConfig(name=key, config_operation=operation, value=text)
        for key, operation, text in changes
    ]
    resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (response,) = node.ask(request).responses
    return ErrorCode(response.error_code)


def replace(node: Any, kind: int, name: str, *configs: tuple[str, str | None], validate_only: bool = False) -> Any:
    resource = replacing.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[replacing.AlterableConfig(name=key, value=text) for key, text in configs],
    )
    (response,) = node.ask(AlterConfigsRequest(resources=[resource], validate_only=validate_only)).responses
    return ErrorCode(response.error_code)


# ---- describing


def test_a_topic_is_described_with_every_setting_it_can_have(node: Any) -> None:
    configs = describe(node, TOPIC, "a").configs
    assert len(configs) == 33
    assert not any(config.read_only or config.is_sensitive or config.synonyms for config in configs)


def test_asking_for_no_key_in_particular_gives_all(node: Any) -> None:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name="a", configuration_keys=[])
    (result,) = node.ask(DescribeConfigsRequest(resources=[resource])).results
    assert len(result.configs) == 33


def test_keys_that_do_not_exist_are_left_out(node: Any) -> None:
    configs = describe(node, TOPIC, "a", "retention.ms", "nosuch").configs
    assert [config.name for config in configs] == ["retention.ms"]


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        ("retention.ms", 5, "604800000"),
        ("segment.bytes", 3, "1073741824"),
        ("cleanup.policy", 7, "delete"),
        ("min.cleanable.dirty.ratio", 6, "0.5"),
        ("preallocate", 1, "false"),
        ("compression.type", 2, "producer"),
        ("leader.replication.throttled.replicas", 7, ""),
    ],
)
def test_values_and_types_are_written_as_kafka_writes_them(node: Any, key: str, kind: int, text: str) -> None:
    config = described(node, TOPIC, "a", key)
    assert (config.config_type, config.value) == (kind, text)


def test_documentation_is_told_on_demand(node: Any) -> None:
    (config,) = describe(node, TOPIC, "a", "retention.ms", include_documentation=True).configs
    assert "deleted" in config.documentation
    assert described(node, TOPIC, "a", "retention.ms").documentation is None


def test_every_source_of_a_value_is_told_the_one_in_force_first(node: Any) -> None:
    change(node, BROKER, "", ("message.max.bytes", SET, "3000000"))
    change(node, TOPIC, "a", ("max.message.bytes", SET, " 44444 "))
    config = described(node, TOPIC, "a", "max.message.bytes")
    assert (config.value, config.config_source) == ("44444", 1)
    assert [(one.name, one.value, one.source) for one in config.synonyms] == [
        ("max.message.bytes", "44444", 1),
        ("message.max.bytes", "3000000", 3),
        ("message.max.bytes", "1048588", 5),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nosuch", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_has_no_settings_is_refused(node: Any, kind: int, name: str, code: ErrorCode) -> None:
    result = describe(node, kind, name)
    assert (ErrorCode(result.error_code), result.configs) == (code, [])


def test_a_broker_is_described_with_what_can_be_altered_and_what_cannot(node: Any) -> None:
    assert described(node, BROKER, "1", "num.partitions").read_only
    assert not described(node, BROKER, "1", "message.max.bytes").read_only
    assert described(node, BROKER, "1", "node.id").config_source == 4
    assert described(node, BROKER, "1", "log.retention.ms").value is None


@pytest.mark.parametrize(
    ("key", "text"), [("log.dirs", "/data"), ("advertised.listeners", "PLAINTEXT://broker.example:9092")]
)
def test_what_was_given_as_an_argument_is_told_like_a_setting(node: Any, key: str, text: str) -> None:
    config = described(node, BROKER, "1", key)
    assert (config.value, config.config_source, config.read_only) == (text, 4, True)


def test_the_default_broker_is_described_by_what_was_altered_for_all(node: Any) -> None:
    assert describe(node, BROKER, "").configs == []
    change(node, BROKER, "", ("message.max.bytes", SET, "5"))
    config = described(node, BROKER, "", "message.max.bytes")
    assert (config.value, config.config_source) == ("5", 3)
    assert [(one.value, one.source) for one in config.synonyms] == [("5", 3)]


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_describes(node: Any, version: int) -> None:
    assert describe(node, TOPIC, "a", "retention.ms", version=version).configs[0].value == "604800000"


# ---- altering


@pytest.mark.parametrize("alter", [change, replace])
def test_an_altered_topic_stays_altered_after_a_restart(node: Any, alter: Any) -> None:
    config = ("segment.bytes", SET, "65536") if alter is change else ("segment.bytes", "65536")
    assert alter(node, TOPIC, "a", config) == OK
    assert node.broker.topics.get("a").log_config.segment_bytes == 65_536
    node.restart()
    assert value(node, TOPIC, "a", "segment.bytes") == "65536"


def test_open_logs_get_their_new_settings_at_once(node: Any) -> None:
    log = node.broker.partition("a", 0).log
    change(node, TOPIC, "a", ("max.message.bytes", SET, "1000"))
    assert log.config.max_message_bytes == 1000
    change(node, BROKER, "1", ("log.segment.bytes", SET, "70000"))
    assert log.config.segment_bytes == 70_000


def test_replacing_drops_settings_that_are_not_named(node: Any) -> None:
    replace(node, TOPIC, "a", ("retention.ms", "5"), ("segment.ms", "6"))
    replace(node, TOPIC, "a", ("segment.ms", "7"))
    assert (value(node, TOPIC, "a", "retention.ms"), value(node, TOPIC, "a", "segment.ms")) == ("604800000", "7")


def test_changing_leaves_settings_that_are_not_named(node: Any) -> None:
    change(node, TOPIC, "a", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))
    change(node, TOPIC, "a", ("segment.ms", DELETE, None))
    assert (value(node, TOPIC, "a", "retention.ms"), value(node, TOPIC, "a", "segment.ms")) == ("5", "604800000")


def test_lists_are_appended_to_and_subtracted_from_starting_at_the_default(node: Any) -> None:
    steps = [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (SUBTRACT, "nosuch", "compact"),
        (SUBTRACT, "compact", ""),
        (APPEND, "delete,compact", "delete,compact"),
    ]
    for operation, text, after in steps:
        assert change(node, TOPIC, "a", ("cleanup.policy", operation, text)) == OK
        assert value(node, TOPIC, "a", "cleanup.policy") == after


def test_a_list_does_not_grow_beyond_what_can_be_told(node: Any) -> None:
    name = "leader.replication.throttled.replicas"
    codes = []
    for first in range(0, 8000, 2000):
        more = ",".join(f"{index}:1" for index in range(first, first + 2000))
        codes.append(change(node, TOPIC, "a", (name, APPEND, more)))
    assert codes == [OK, OK, ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG]
    assert len(described(node, TOPIC, "a", name).value) > 20_000


@pytest.mark.parametrize("alter", [change, replace])
def test_a_validated_alteration_does_not_happen(node: Any, alter: Any) -> None:
    config = ("segment.ms", SET, "5") if alter is change else ("segment.ms", "5")
    assert alter(node, TOPIC, "a", config, validate_only=True) == OK
    assert value(node, TOPIC, "a", "segment.ms") == "604800000"


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code"),
    [
        (TOPIC, "a", [("nosuch", SET, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("nosuch", DELETE, None)], OK),
        (TOPIC, "a", [("nosuch", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("segment.ms", SET, "x")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("segment.ms", SET, "")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("segment.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", [("segment.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("cleanup.policy", APPEND, "zzz")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "a", [("segment.ms", SET, "1"), ("segment.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", [("segment.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", [("remote.storage.enable", SET, "true")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "nosuch", [("segment.ms", SET, "x")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", [("segment.ms", SET, "1")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "", [("segment.ms", SET, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("num.partitions", SET, "7")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.hours", SET, "7")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", SET, "x")], ErrorCode.INVALID_REQUEST),
        (BROKER, "7", [("log.retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "x", [("log.retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.cleanup.policy", APPEND, "compact")], OK),
        (99, "1", [("x", SET, "5")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_alterations_are_judged_as_kafka_judges_them(
    node: Any, kind: int, name: str, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    before = node.broker.topics.version
    assert change(node, kind, name, *changes) == code
    assert (node.broker.topics.version > before) == (code == OK)


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "a", [("segment.ms", None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", [("segment.ms", "1"), ("segment.ms", "2")], ErrorCode.INVALID_REQUEST),
        (TOPIC, "a", [("nosuch", "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, "nosuch", [("segment.ms", "1")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", [("segment.ms", "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "7", [("log.retention.ms", "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", "1")], OK),
        (LOGGER, "1", [("root", "DEBUG")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_replacements_are_judged_as_kafka_judges_them(
    node: Any, kind: int, name: str, configs: list[tuple[str, str | None]], code: ErrorCode
) -> None:
    assert replace(node, kind, name, *configs) == code


def test_a_resource_named_twice_is_refused_each_time(node: Any) -> None:
    resource = incremental.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="a",
        configs=[incremental.AlterableConfig(name="segment.ms", config_operation=SET, value="5")],
    )
    responses = node.ask(IncrementalAlterConfigsRequest(resources=[resource, resource])).responses
    assert [ErrorCode(one.error_code) for one in responses] == [ErrorCode.INVALID_REQUEST] * 2
    assert value(node, TOPIC, "a", "segment.ms") == "604800000"


def test_a_broker_setting_we_do_not_know_is_kept_and_never_told(node: Any) -> None:
    assert change(node, BROKER, "1", ("plugin.secret", SET, "hunter2")) == OK
    config = described(node, BROKER, "1", "plugin.secret")
    assert (config.value, config.is_sensitive, config.read_only) == (None, True, True)
    assert config.synonyms[0].value is None
    assert node.broker.topics.altered("1") == {"plugin.secret": "hunter2"}


# ---- loggers


def test_levels_of_loggers_can_be_altered(node: Any) -> None:
    name = "lowwater.broker.topics_of_this_test"
    logger = logging.getLogger(name)
    assert change(node, LOGGER, "1", (name, SET, "DEBUG")) == OK
    assert logger.level == logging.DEBUG
    assert value(node, LOGGER, "1", name) == "DEBUG"
    assert change(node, LOGGER, "1", (name, SET, "FATAL"), validate_only=True) == OK
    assert logger.level == logging.DEBUG
    assert change(node, LOGGER, "1", (name, DELETE, None)) == OK
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        (("nosuch", SET, "DEBUG"), ErrorCode.INVALID_CONFIG),
        (("root", SET, "NOPE"), ErrorCode.INVALID_CONFIG),
        (("root", DELETE, None), ErrorCode.INVALID_REQUEST),
        (("root", APPEND, "DEBUG"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_levels_that_cannot_be_are_refused(node: Any, changed: tuple[str, int, str | None], code: ErrorCode) -> None:
    level = logging.root.level
    assert change(node, LOGGER, "1", changed) == code
    assert logging.root.level == level


# ---- what has settings


def listed(node: Any, *types: int, version: int = 1) -> tuple[ErrorCode, list[tuple[int, str]]]:
    response = node.ask(ListConfigResourcesRequest(resource_types=list(types)), version)
    resources = [(one.resource_type, one.resource_name) for one in response.config_resources]
    return ErrorCode(response.error_code), resources


def test_what_has_settings_is_listed_by_type(node: Any) -> None:
    assert listed(node) == (OK, [(TOPIC, "a"), (BROKER, "1"), (LOGGER, "1")])
    assert listed(node, BROKER, BROKER) == (OK, [(BROKER, "1")])
    assert listed(node, METRICS) == (OK, [])
    assert listed(node, GROUP) == (OK, [])
    assert listed(node, 99) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert listed(node, version=0) == (OK, [])
