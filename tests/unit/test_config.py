"""The table of settings, and the values that hold for a broker and its topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowwater.config import (
    BROKER_SETTING,
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    BrokerConfig,
    ListenerAddress,
    Setting,
    Source,
    TopicConfig,
    check_group_settings,
    check_topic_settings,
    client_listener,
    listener_text,
    parse_listener,
    parse_properties,
    value_text,
)
from lowwater.config.reference import help_text, markdown
from lowwater.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs" / "configuration.md"
HOUR_MS = 3_600_000


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.load(None, {name.replace("_", "."): text for name, text in settings.items()})


# ---- the table


def test_the_configuration_page_is_the_one_the_table_prints() -> None:
    assert DOCS.read_text() == markdown(), "run: python -m lowwater.config.reference > docs/configuration.md"


@pytest.mark.parametrize("setting", [*BROKER_SETTINGS, *TOPIC_SETTINGS], ids=lambda setting: setting.name)
def test_a_default_is_a_value_the_setting_itself_accepts(setting: Setting) -> None:
    text = value_text(setting.default)
    assert text is None or setting.parse(text) == setting.default


@pytest.mark.parametrize("setting", [*BROKER_SETTINGS, *TOPIC_SETTINGS], ids=lambda setting: setting.name)
def test_a_setting_that_does_nothing_says_so(setting: Setting) -> None:
    says_so = setting.help.startswith("Accepted and stored; it changes nothing") or "Only false" in setting.help
    assert says_so == (not setting.acts)


@pytest.mark.parametrize("setting", TOPIC_SETTINGS, ids=lambda setting: setting.name)
def test_a_topic_setting_has_the_default_of_its_broker_settings(setting: Setting) -> None:
    assert TopicConfig(config(), {}).value(setting.name) == setting.default
    assert all(synonym.name in BROKER_SETTING for synonym in setting.synonyms)


def test_names_are_unique_within_each_table() -> None:
    for table in (BROKER_SETTINGS, TOPIC_SETTINGS):
        assert len({setting.name for setting in table}) == len(table)


def test_help_names_every_broker_setting_with_its_default() -> None:
    text = help_text()
    assert all(f"{setting.name}\n" in text for setting in BROKER_SETTINGS)
    assert "default 1073741824" in text


# ---- loading


def test_the_command_line_goes_before_the_file() -> None:
    loaded = BrokerConfig.load("num.partitions=3\nlog.segment.bytes=70000\n", {"num.partitions": "5"})
    assert (loaded.int("num.partitions"), loaded.int("log.segment.bytes")) == (5, 70_000)


def test_an_unknown_name_is_refused_with_names_that_look_alike() -> None:
    with pytest.raises(ConfigError, match=r"unknown setting 'log.retention.hour'.*log\.retention\.hours"):
        BrokerConfig.load("log.retention.hour=5", {})


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("num.partitions", "many", "whole numbers"),
        ("num.partitions", "0", "1 or more"),
        ("num.partitions", "1_000", "whole numbers"),
        ("num.partitions", "\u0663", "whole numbers"),
        ("num.partitions", "2147483648", "2147483647"),
        ("num.partitions", "", "whole numbers"),
        ("auto.create.topics.enable", "yes", "true, false"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "0 to 1"),
        ("log.cleaner.min.cleanable.ratio", "half", "numbers such as"),
        ("log.cleaner.min.cleanable.ratio", "nan", "0 to 1"),
        ("log.cleanup.policy", "delete,shrink", "a list of delete, compact"),
        ("log.flush.policy", "sometimes", "acks, always, never"),
        ("log.retention.ms", "0", "-1 (unlimited), or 1 or more"),
        ("listeners", "SSL://127.0.0.1:9093", "PLAINTEXT://"),
        ("listeners", "PLAINTEXT://127.0.0.1", "PLAINTEXT://"),
        ("listeners", "PLAINTEXT://127.0.0.1:70000", "PLAINTEXT://"),
        ("listeners", "PLAINTEXT://a:1,PLAINTEXT://b:2", "one address"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_the_value_and_what_is_allowed(name: str, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig.load(None, {name: text})
    assert name in str(refused.value)
    assert repr(text) in str(refused.value)
    assert words in str(refused.value)


def test_values_come_out_typed() -> None:
    loaded = config(auto_create_topics_enable="FALSE", log_cleanup_policy=" compact , delete", log_roll_hours="+2")
    assert loaded.bool("auto.create.topics.enable") is False
    assert loaded.list("log.cleanup.policy") == ("compact", "delete")
    assert loaded.int("log.roll.hours") == 2
    assert loaded.float("log.cleaner.min.cleanable.ratio") == 0.5
    assert loaded.str("log.flush.policy") == "acks"
    assert loaded.maybe_str("broker.rack") is None
    assert loaded.list("advertised.listeners") == ()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("PLAINTEXT://:9092", ListenerAddress("PLAINTEXT", "", 9092)),
        ("PLAINTEXT://broker.example:0", ListenerAddress("PLAINTEXT", "broker.example", 0)),
        ("PLAINTEXT://[::1]:9092", ListenerAddress("PLAINTEXT", "::1", 9092)),
    ],
)
def test_a_listener_is_a_name_a_host_and_a_port(text: str, address: ListenerAddress) -> None:
    assert parse_listener(text) == address


@pytest.mark.parametrize(
    ("settings", "data_dir"),
    [({}, None), ({"log.dir": "/a"}, "/a"), ({"log.dir": "/a", "log.dirs": "/b"}, "/b")],
)
def test_log_dirs_names_the_data_directory_before_log_dir(settings: dict[str, str], data_dir: str | None) -> None:
    assert BrokerConfig.load(None, settings).data_dir() == data_dir


def test_there_is_one_data_directory() -> None:
    with pytest.raises(ConfigError, match="one directory"):
        BrokerConfig.load(None, {"log.dirs": "/a,/b"})


def test_a_listener_reads_back_as_it_was_written() -> None:
    for host in ("", "broker.example", "::1"):
        assert parse_listener(listener_text("PLAINTEXT", host, 9092)) == ListenerAddress("PLAINTEXT", host, 9092)


# ---- properties files


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb: 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# no\n! no\n\n  a = b = c  \n", {"a": "b = c"}),
        ("a=one,\\\n   two\nb=2", {"a": "one,two", "b": "2"}),
        ("a=back\\\\\nb=2", {"a": "back\\", "b": "2"}),
        ("a\\=b=\\u0041\\t.", {"a=b": "A\t."}),
        ("a=1\na=2\r\nb=3\rc=4", {"a": "2", "b": "3", "c": "4"}),
        ("a=\nb", {"a": "", "b": ""}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_a_file_is_read_as_java_reads_properties(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text) == values


@pytest.mark.parametrize(("text", "line"), [("a=1\n=2", 2), ("\n\na=\\uZZZZ", 3), ("a=1,\\\n\\u12", 1)])
def test_a_broken_line_is_named_by_its_number(text: str, line: int) -> None:
    with pytest.raises(ConfigError, match=f"line {line}:"):
        parse_properties(text)


# ---- which value holds


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({}, 168 * HOUR_MS),
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-1", "log.retention.hours": "5"}, -1),
    ],
)
def test_retention_is_taken_in_ms_then_minutes_then_hours(settings: dict[str, str], retention_ms: int) -> None:
    assert TopicConfig(BrokerConfig.load(None, settings), {}).int("retention.ms") == retention_ms


def test_a_topics_own_setting_goes_before_the_brokers() -> None:
    broker = config(log_segment_bytes="70000", message_max_bytes="900")
    topic = TopicConfig(broker, {"segment.bytes": "65536"})
    assert (topic.int("segment.bytes"), topic.int("max.message.bytes")) == (65_536, 900)


def test_what_was_altered_for_one_broker_goes_before_what_was_altered_for_all() -> None:
    started = config(message_max_bytes="100")
    altered = started.altered({"message.max.bytes": "200", "log.roll.ms": "9"}, {"message.max.bytes": "300"})
    assert (started.int("message.max.bytes"), altered.int("message.max.bytes")) == (100, 300)
    assert TopicConfig(altered, {}).int("segment.ms") == 9
    assert altered.altered({}, {}).int("message.max.bytes") == 100


def test_a_dynamic_name_outside_the_table_is_kept_and_means_nothing() -> None:
    altered = config().altered({}, {"my.plugin.key": "1"})
    assert altered.layer(Source.DYNAMIC_BROKER) == {"my.plugin.key": "1"}


# Recorded from Apache Kafka 4.3.
def test_every_source_of_a_value_is_listed_the_one_in_force_first() -> None:
    started = config(message_max_bytes="2000000", log_retention_hours="5")
    altered = started.altered(
        {"log.retention.ms": "8888888", "message.max.bytes": "3000000"}, {"log.retention.ms": "7777777"}
    )
    topic = TopicConfig(altered, {"max.message.bytes": "44444"})
    assert [(s.name, s.text, s.source) for s in topic.sources("max.message.bytes")] == [
        ("max.message.bytes", "44444", Source.TOPIC),
        ("message.max.bytes", "3000000", Source.DYNAMIC_DEFAULT),
        ("message.max.bytes", "2000000", Source.STATIC),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    ]
    assert [(s.name, s.text, s.source) for s in topic.sources("retention.ms")] == [
        ("log.retention.ms", "7777777", Source.DYNAMIC_BROKER),
        ("log.retention.ms", "8888888", Source.DYNAMIC_DEFAULT),
        ("log.retention.hours", "5", Source.STATIC),
        ("log.retention.hours", "168", Source.DEFAULT),
    ]


def test_hours_are_listed_as_a_source_only_behind_ms() -> None:
    broker = config(log_retention_hours="5")
    assert TopicConfig(broker, {}).sources("retention.ms") == []
    hours = broker.sources(BROKER_SETTING["log.retention.hours"])
    assert [(s.text, s.source) for s in hours] == [("5", Source.STATIC), ("168", Source.DEFAULT)]


# ---- topic settings together


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"retention": "1"}, "unknown setting 'retention'"),
        ({"retention.ms": "-2"}, "-1 or more"),
        ({"remote.storage.enable": "true"}, "no tiered storage"),
        ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, "is above max.compaction.lag.ms=5"),
        ({"leader.replication.throttled.replicas": "x"}, "partition:broker"),
        ({"segment.bytes": "13"}, "14 or more"),
        ({"cleanup.policy": "Compact"}, "delete, compact"),
    ],
)
def test_topic_settings_that_cannot_be_are_refused(overrides: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_topic_settings(config(), overrides)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"segment.bytes": "65536", "retention.ms": "-1"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact,delete"},
        {"leader.replication.throttled.replicas": "0:1,1:1"},
        {"follower.replication.throttled.replicas": "*"},
    ],
)
def test_topic_settings_that_can_be_pass(overrides: dict[str, str]) -> None:
    check_topic_settings(config(), overrides)


def test_a_lag_of_the_topic_is_checked_against_the_other_lag_of_the_broker() -> None:
    with pytest.raises(ConfigError, match="above max"):
        check_topic_settings(config(log_cleaner_max_compaction_lag_ms="5"), {"min.compaction.lag.ms": "6"})


def test_a_password_never_stands_in_an_error() -> None:
    from lowwater.config import Kind
    from lowwater.config.setting import one_of

    secret = Setting("some.password", Kind.PASSWORD, None, "", one_of("right"))
    with pytest.raises(ConfigError) as refused:
        secret.parse("hunter2")
    assert "hunter2" not in str(refused.value)


# Every name that the server.properties of an Apache Kafka 4.3 distribution sets, with its value there.
KAFKAS_OWN_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_the_file_that_comes_with_kafka_is_accepted_and_what_it_sets_in_vain_is_known() -> None:
    config = BrokerConfig.load(KAFKAS_OWN_FILE, {})
    assert client_listener(config.list("listeners")) == ListenerAddress("PLAINTEXT", "", 9092)
    assert client_listener(config.list("advertised.listeners")) == ListenerAddress("PLAINTEXT", "localhost", 9092)
    ignored = config.without_effect()
    assert "process.roles" in ignored
    assert "transaction.state.log.min.isr" in ignored
    assert not {"node.id", "listeners", "num.partitions", "log.retention.hours"} & set(ignored)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("consumer.session.timeout.ms", "45000", True),
        ("consumer.session.timeout.ms", "44999", False),
        ("consumer.session.timeout.ms", "60001", False),
        ("consumer.heartbeat.interval.ms", "15000", True),
        ("consumer.heartbeat.interval.ms", "15001", False),
        ("consumer.heartbeat.interval.ms", "soon", False),
        ("consumer.assignment.interval.ms", "15000", True),
        ("group.max.size", "1", False),
    ],
)
def test_settings_of_a_group_are_bounded_by_those_of_the_broker(name: str, value: str, allowed: bool) -> None:
    broker = BrokerConfig.load(None, {})
    if allowed:
        check_group_settings(broker, {name: value})
    else:
        with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
            check_group_settings(broker, {name: value})


def test_a_group_calls_more_often_than_it_times_out() -> None:
    broker = BrokerConfig.load(None, {"group.consumer.min.session.timeout.ms": "5000"})
    with pytest.raises(ConfigError, match="too seldom"):
        check_group_settings(broker, {"consumer.session.timeout.ms": "5000", "consumer.heartbeat.interval.ms": "5000"})


@pytest.mark.parametrize(
    ("settings", "lower", "higher"),
    [
        ({"group.min.session.timeout.ms": "1800001"}, "group.min.session", "group.max.session"),
        ({"group.consumer.session.timeout.ms": "1000"}, "group.consumer.min.session", "group.consumer.session"),
        ({"group.consumer.session.timeout.ms": "60001"}, "group.consumer.session", "group.consumer.max.session"),
        ({"group.consumer.heartbeat.interval.ms": "100"}, "group.consumer.min.heart", "group.consumer.heart"),
        ({"group.consumer.heartbeat.interval.ms": "16000"}, "group.consumer.heart", "group.consumer.max.heart"),
    ],
)
def test_settings_of_groups_that_contradict_each_other_are_refused(
    settings: dict[str, str], lower: str, higher: str
) -> None:
    with pytest.raises(ConfigError, match=rf"{lower}.* is above {higher}"):
        BrokerConfig.load(None, settings)
