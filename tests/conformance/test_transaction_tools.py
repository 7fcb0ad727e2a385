"""Apache Kafka's own tools read what is stored of transactions, and change the level of their feature."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from tests.conformance.asking import look_up
from tests.conformance.creating import create_topic
from tests.conformance.raw import Wire
from tests.conformance.test_console_tools import Tools, segments_of
from tests.conformance.txn_cells.asks import End, Init, Write
from tests.conformance.txn_cells.play import Play
from tests.conformance.txn_cells.record import level_of, prepare, set_level
from tests.conformance.under_test import UnderTest, running

pytestmark = pytest.mark.peer("kafka")

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
FEATURES = "org.apache.kafka.tools.FeatureCommand"
LATEST = -1
STATE_TOPIC, TOPIC = "__transaction_state", "written"
EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, PREPARE_ABORT, COMPLETE_ABORT = 0, 1, 2, 4, 3, 5
STATES = [EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT, ONGOING, PREPARE_ABORT, COMPLETE_ABORT]


@pytest.fixture(scope="module")
def used(against: str) -> Iterator[UnderTest]:
    """A broker that has seen a transaction committed and another aborted, of one id."""
    with running(against, {"transaction.state.log.num.partitions": "1"}) as broker:
        prepare(broker.address)
        create_topic(broker.address, TOPIC)
        with Wire(broker.address) as wire:
            asks = (Init(), Write(), End(), Write(), End(commit=False))
            Play(wire, "of tools", TOPIC, "group", 0).prepare(asks)
        yield broker


def test_kafkas_formatter_reads_every_state_of_a_transaction(used: UnderTest) -> None:
    with Wire(used.address) as wire:
        stored = look_up(wire, STATE_TOPIC, LATEST).offset
    where = ("--topic", STATE_TOPIC, "--from-beginning", "--max-messages", str(stored), "--timeout-ms", "30000")
    text, found, decoder = Tools(used).run(CONSOLE, *where, "--formatter", FORMATTER).strip(), [], json.JSONDecoder()
    while text:  # One object after the other, with nothing in between.
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].lstrip()
    mine = [one["value"]["data"] for one in found if one["key"]["data"]["transactionalId"] == "of tools"]
    assert [value["transactionStatus"] for value in mine] == STATES
    assert [value["producerEpoch"] for value in mine] == [0, 0, 1, 1, 1, 2, 2]
    assert mine[1]["transactionPartitions"] == [{"topic": TOPIC, "partitionIds": [0]}]
    assert {value["transactionTimeoutMs"] for value in mine} == {60_000}
    assert {one["value"]["version"] for one in found} == {1}


def test_kafka_dump_log_reads_the_states_and_the_ends_of_transactions(used: UnderTest) -> None:
    tools = Tools(used)
    [states] = segments_of(used, STATE_TOPIC)
    told = tools.run(DUMP, "--files", str(states), "--transaction-log-decoder", server=False)
    assert "transactionalId" in told
    assert "of tools" in told
    [data] = segments_of(used, TOPIC)
    told = tools.run(DUMP, "--files", str(data), "--deep-iteration", server=False)
    ends = re.findall(r"endTxnMarker: (\w+)", told)
    assert ends == ["COMMIT", "ABORT"]
    assert told.count("isTransactional: true isControl: true") == len(ends)


def test_kafka_features_describes_and_changes_the_level_of_transactions(used: UnderTest) -> None:
    tools = Tools(used)
    rows = [line.split() for line in tools.run(FEATURES, "describe").splitlines()]
    [row] = [row for row in rows if row[:2] == ["Feature:", "transaction.version"]]
    assert row[2:8] == ["SupportedMinVersion:", "0", "SupportedMaxVersion:", "2", "FinalizedVersionLevel:", "2"]
    told = tools.run(FEATURES, "downgrade", "--feature", "transaction.version=1")
    assert "transaction.version was downgraded to 1" in told
    with Wire(used.address) as wire:
        assert level_of(wire) == 1
    told = tools.run(FEATURES, "upgrade", "--feature", "transaction.version=2")
    assert "transaction.version was upgraded to 2" in told
    set_level(used.address, 2)
