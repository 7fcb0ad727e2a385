"""Apache Kafka's own command-line tools, each at least once, as an operator calls them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from peers import java
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

pytestmark = pytest.mark.peer("kafka")

TOOL_TIMEOUT_S = 60


class Tools:
    def __init__(self, broker: UnderTest) -> None:
        self.broker = broker

    def run(self, main_class: str, *arguments: str, stdin: str = "", server: bool = True) -> str:
        where = ["--bootstrap-server", self.broker.bootstrap] if server else []
        command = java.command(main_class, *where, *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S)
        assert done.returncode == 0, f"{main_class} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def topics(self, *arguments: str) -> str:
        return self.run("org.apache.kafka.tools.TopicCommand", *arguments)

    def produce(self, topic: str, lines: str, *arguments: str) -> None:
        self.run("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, *arguments, stdin=lines)

    def consume(self, topic: str, count: int, *arguments: str) -> list[str]:
        limit = ("--max-messages", str(count), "--timeout-ms", "30000")
        name = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        return self.run(name, "--topic", topic, *limit, *arguments).splitlines()


@pytest.fixture
def tools(broker: UnderTest) -> Tools:
    return Tools(broker)


def test_kafka_topics_creates_lists_describes_alters_and_deletes(tools: Tools, fresh_name: str) -> None:
    created = tools.topics("--create", "--topic", fresh_name, "--partitions", "2", "--config", "retention.ms=1234567")
    assert f"Created topic {fresh_name}." in created
    assert fresh_name in tools.topics("--list").splitlines()
    tools.topics("--alter", "--topic", fresh_name, "--partitions", "3")
    described = tools.topics("--describe", "--topic", fresh_name)
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=1234567" in described
    tools.topics("--delete", "--topic", fresh_name)
    assert fresh_name not in tools.topics("--list").splitlines()


def test_the_console_producer_and_consumer_exchange_records(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tools.produce(topic, "a:1\nb:2\nc:3\n", "--compression-codec", "zstd", *keys)
    shown = [f"--formatter-property={each}" for each in ("print.key=true", "print.offset=true", "key.separator=:")]
    where = ("--partition", "0", "--offset", "1")
    assert tools.consume(topic, 2, *where, *shown) == ["Offset:1:b:2", "Offset:2:c:3"]


def test_kafka_get_offsets_tells_both_ends_and_the_maximum_timestamp(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    tools.produce(topic, "1\n2\n3\n")
    name = "org.apache.kafka.tools.GetOffsetShell"
    ends = sorted(tools.run(name, "--topic", topic, "--time", "latest").split())
    assert sum(int(line.rsplit(":", 1)[1]) for line in ends) == 3
    assert sorted(tools.run(name, "--topic", topic, "--time", "earliest").split()) == [f"{topic}:0:0", f"{topic}:1:0"]
    assert topic in tools.run(name, "--topic", topic, "--time", "max-timestamp")


def test_kafka_configs_changes_and_describes_a_topic(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    name = "kafka.admin.ConfigCommand"
    tools.run(name, "--alter", *entity, "--add-config", "max.message.bytes=54321")
    assert "max.message.bytes=54321" in tools.run(name, "--describe", *entity)
    tools.run(name, "--alter", *entity, "--delete-config", "max.message.bytes")
    assert "max.message.bytes" not in tools.run(name, "--describe", *entity)


def test_kafka_configs_describes_the_broker(tools: Tools) -> None:
    name = "kafka.admin.ConfigCommand"
    described = tools.run(name, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    assert "message.max.bytes=1048588" in described


def test_kafka_delete_records_moves_the_log_start(tools: Tools, new_topic: NewTopic, tmp_path: Path) -> None:
    topic = new_topic()
    tools.produce(topic, "1\n2\n3\n")
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 2}]}))
    told = tools.run("org.apache.kafka.tools.DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert "low_watermark: 2" in told
    assert tools.consume(topic, 1, "--partition", "0", "--offset", "earliest") == ["3"]


def test_kafka_log_dirs_lists_the_topic(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    told = tools.run("org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    described = json.loads(told[told.index("{") :])
    partitions = [each["partition"] for folder in described["brokers"][0]["logDirs"] for each in folder["partitions"]]
    assert partitions == [f"{topic}-0"]


def test_kafka_metadata_quorum_describes_this_node(tools: Tools) -> None:
    told = tools.run("org.apache.kafka.tools.MetadataQuorumCommand", "describe", "--status")
    assert "LeaderId:" in told
    assert "ClusterId:" in told


def test_kafka_broker_api_versions_lists_what_is_served(tools: Tools) -> None:
    told = tools.run("org.apache.kafka.tools.BrokerApiVersionsCommand")
    assert "Produce(0): 0 to 13" in told
    assert "Fetch(1): 4 to 18" in told


def test_kafka_dump_log_reads_a_segment(tools: Tools, new_topic: NewTopic) -> None:
    topic = new_topic()
    keys = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    tools.produce(topic, "a:first\nb:second\n", "--compression-codec", "gzip", *keys)
    [segment] = segments_of(tools.broker, topic)
    told = tools.run(
        "org.apache.kafka.tools.DumpLogSegments", "--files", str(segment), "--print-data-log", server=False
    )
    assert "baseOffset: 0 lastOffset: 1 count: 2" in told
    assert "isvalid: true" in told
    assert "compresscodec: gzip" in told
    assert "payload: first" in told
    assert "payload: second" in told


def segments_of(broker: UnderTest, topic: str) -> list[Path]:
    """The .log files of partition 0, in either broker's layout."""
    here = f"{topic}-0/*.log" if broker.name == "kafka" else f"topics/{topic}-*/0/*.log"
    return sorted(broker.data_dir.glob(here))
