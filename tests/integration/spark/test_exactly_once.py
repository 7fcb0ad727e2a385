"""The exactly-once sink on a broker, played as Spark plays it, without a JVM. Kills are in tests/crash."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.crash.spark_sink_life import SCHEMA, Blow, BlowError, Driver, Fault, Play, Point, lower_level
from tests.crash.spark_sink_report import seen
from tests.fresh import fresh
from tests.spark.writing import Topics

from lowwater.cli.main import lowwater
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import AuthorizationError, BadRowsError
from lowwater.client.network import Network
from lowwater.errors import ErrorCode
from lowwater.spark.exactly_once import ledger
from lowwater.spark.exactly_once.errors import LedgerError, LostTransactionsError, SinkTakenError, TooLateError
from lowwater.spark.exactly_once.fencing import abort_by_id, open_transactions
from lowwater.spark.sink import Attempt, Writing, Written
from lowwater.spark.sink_once import LowwaterOnceWriter
from lowwater.testing import Broker

TASKS = 2


@pytest.fixture(scope="module", params=[2, 1], ids=["epochs", "no-epochs"])
def level(broker: Broker, request: pytest.FixtureRequest) -> int:
    """Both kinds of transactions: with an epoch for each, and without."""
    if request.param == 1:
        lower_level(broker.bootstrap)
    return int(request.param)


@pytest.fixture(scope="module")
def topics(broker: Broker) -> Iterator[Topics]:
    topics = Topics(broker.bootstrap)
    yield topics
    topics.close()


@pytest.fixture
def play(broker: Broker, topics: Topics, level: int, tmp_path: Path) -> Play:
    return Play(broker.bootstrap, topics.create(2, "once"), fresh("sink"), str(tmp_path), tasks=TASKS, rows=2)


@pytest.fixture
def driver(play: Play) -> Driver:
    return Driver(play, Fault(None))


@pytest.fixture
def cluster(broker: Broker) -> Iterator[tuple[BlockingDriver, Cluster]]:
    config = ClientConfig({"bootstrap.servers": broker.bootstrap})
    running = BlockingDriver(config)
    network = Network(config, running)
    yield running, Cluster(network)
    network.close()
    running.close()


def committed(play: Play) -> list[str]:
    return sorted(seen(play.bootstrap, play.topic, "read_committed").elements())


def rows(play: Play, batches: int) -> list[str]:
    return sorted(row for batch in range(batches) for task in range(TASKS) for row in play.rows_of(batch, task))


def sinks(play: Play, *words: str) -> Any:
    return CliRunner().invoke(lowwater, ["spark", "sinks", "-b", play.bootstrap, *words])


def states_of(play: Play) -> list[tuple[int, str]]:
    found = json.loads(sinks(play, "--json").stdout)
    return [(each["batch"], each["state"]) for each in found if each["sink"] == play.sink]


def test_rows_are_seen_when_their_batch_is_committed_and_not_before(play: Play, driver: Driver) -> None:
    pickled = pickle.dumps(driver.writer())
    messages = [driver.attempt(pickled, 0, task) for task in range(TASKS)]
    assert committed(play) == []
    assert seen(play.bootstrap, play.topic, "read_uncommitted").total() == len(rows(play, 1))
    driver.writer().commit(messages, 0)
    assert committed(play) == rows(play, 1)


def test_a_batch_that_is_done_is_not_written_again(play: Play, driver: Driver) -> None:
    driver.run(2)
    before = seen(play.bootstrap, play.topic, "read_uncommitted")
    driver.run_batch(1)
    assert seen(play.bootstrap, play.topic, "read_uncommitted") == before
    assert committed(play) == rows(play, 2)


def test_a_query_that_begins_anew_writes_its_first_batch(play: Play, driver: Driver) -> None:
    driver.run(1)
    again = Driver(play, Fault(None))
    again.query = "another"
    again.run_batch(0)
    assert committed(play) == sorted(2 * rows(play, 1))


def test_of_two_attempts_of_a_task_one_is_committed_and_the_other_aborted(
    play: Play, driver: Driver, cluster: tuple[BlockingDriver, Cluster]
) -> None:
    pickled = pickle.dumps(driver.writer())
    messages = [driver.attempt(pickled, 0, task) for task in range(TASKS)]
    driver.attempt(pickled, 0, 1)
    driver.writer().commit(messages, 0)
    assert committed(play) == rows(play, 1)
    running, known = cluster
    assert not [each for each in running.run(open_transactions(known)) if each.startswith(f"{play.sink}-")]


def test_what_a_batch_has_written_before_it_failed_is_aborted(play: Play, driver: Driver) -> None:
    pickled = pickle.dumps(driver.writer())
    messages: list[Any] = [driver.attempt(pickled, 0, 0), None]
    driver.writer().abort(messages, 0)
    driver.run_batch(0)
    assert committed(play) == rows(play, 1)


@pytest.mark.parametrize("point", [Point.AFTER_INTENT, Point.BETWEEN_ENDS, Point.BEFORE_DONE, Point.AFTER_DONE])
def test_a_commit_that_fails_behind_its_intent_is_finished_and_not_aborted(play: Play, point: Point) -> None:
    with pytest.raises(BlowError):
        Driver(play, Fault(point, Blow.RAISE)).run_batch(0)
    Driver(play, Fault(None)).run_batch(0)
    assert committed(play) == rows(play, 1)
    assert sorted(seen(play.bootstrap, play.topic, "read_uncommitted").elements()) == rows(play, 1), "none twice"


@pytest.mark.parametrize("point", [Point.BEFORE_INTENT, Point.IN_INTENT])
def test_a_commit_that_fails_before_its_intent_leaves_nothing(play: Play, point: Point) -> None:
    with pytest.raises(BlowError):
        Driver(play, Fault(point, Blow.RAISE)).run_batch(0)
    assert committed(play) == []
    Driver(play, Fault(None)).run_batch(0)
    assert committed(play) == rows(play, 1)


def test_the_older_of_two_drivers_is_refused(play: Play) -> None:
    older, newer = Driver(play, Fault(None)), Driver(play, Fault(None))
    pickled, after = (pickle.dumps(each.writer()) for each in (older, newer))
    # Both have the same batch, tasks and attempts: neither may end the other's transactions.
    ours = [newer.attempt(after, 0, task) for task in range(TASKS)]
    theirs = [older.attempt(pickled, 0, task) for task in range(TASKS)]
    with pytest.raises(SinkTakenError, match=f"sink '{play.sink}' was taken over"):
        older.writer().commit(theirs, 0)
    older.writer().abort(theirs, 0)
    newer.writer().commit(ours, 0)
    assert committed(play) == rows(play, 1)


def test_transactions_that_ended_after_the_intent_are_named_and_can_be_settled(
    play: Play, cluster: tuple[BlockingDriver, Cluster]
) -> None:
    driver = Driver(play, Fault(Point.AFTER_INTENT, Blow.RAISE))
    pickled = pickle.dumps(driver.writer())
    messages = [driver.attempt(pickled, 0, task) for task in range(TASKS)]
    with pytest.raises(BlowError):
        driver.writer().commit(messages, 0)
    lost = messages[1].left.transaction.id
    running, known = cluster
    running.run(abort_by_id(known, lost, 60_000))  # as its timeout would
    for _ in range(2):
        with pytest.raises(LostTransactionsError) as failure:
            Driver(play, Fault(None)).run_batch(0)
        assert failure.value.ids == (lost,)
    assert states_of(play) == [(0, "pending")]
    assert sinks(play, "--settle", play.sink).exit_code == 0
    assert states_of(play) == [(0, "done")]
    Driver(play, Fault(None)).run_batch(0)
    Driver(play, Fault(None)).run_batch(1)
    assert committed(play) == sorted(set(rows(play, 2)) - set(play.rows_of(0, 1)))


def test_a_batch_that_takes_too_long_is_not_committed(play: Play) -> None:
    short = replace(play, settings={"kafka.transaction.timeout.ms": "60000"})
    driver = Driver(short, Fault(None))
    pickled = pickle.dumps(driver.writer())
    messages = [driver.attempt(pickled, 0, task) for task in range(TASKS)]
    late = [replace(each, left=each.left._replace(began_ms=each.left.began_ms - 55_000)) for each in messages]
    with pytest.raises(TooLateError, match="batch 0 took"):
        driver.writer().commit(late, 0)
    driver.writer().abort(late, 0)
    driver.run_batch(0)
    assert committed(play) == rows(play, 1)


def test_a_task_that_fails_aborts_its_transaction(
    play: Play, driver: Driver, cluster: tuple[BlockingDriver, Cluster]
) -> None:
    writer = pickle.loads(pickle.dumps(driver.writer()))
    writer.attempt = Attempt(0, 0, 0, 1, "q")

    def batches() -> Iterator[Any]:
        yield pa.record_batch({"value": ["x" * 5_000_000]})
        raise BadRowsError("the second batch is no batch")

    with pytest.raises(BadRowsError):
        writer.write(batches())
    running, known = cluster
    assert not [each for each in running.run(open_transactions(known)) if each.startswith(f"{play.sink}-")]


def test_a_batch_without_rows_commits_nothing(play: Play, driver: Driver) -> None:
    writer = pickle.loads(pickle.dumps(driver.writer()))
    writer.attempt = Attempt(0, 0, 0, 1, "q")
    message = writer.write(iter([]))
    driver.writer().commit([message], 0)
    assert states_of(play) == []


# -- batch writes


class BatchWriter(LowwaterOnceWriter):
    def _attempt(self) -> Attempt:
        return Attempt(None, 0, 0, 7)


def write_batch(play: Play, run: str, *values: str) -> Written:
    options = {**play.options(), "runId": run}
    pickled = pickle.dumps(BatchWriter(Writing.plan(options, SCHEMA, streaming=False)))
    message = pickle.loads(pickled).write(iter([pa.record_batch({"value": list(values)})]))
    pickle.loads(pickled).commit([message])
    return message


def test_a_batch_write_is_done_once_for_each_name(play: Play) -> None:
    assert write_batch(play, "monday", "a", "b").rows == 2
    assert write_batch(play, "monday", "a", "b").rows == 0
    assert write_batch(play, "tuesday", "c").rows == 1
    assert committed(play) == ["a", "b", "c"]


# -- the ledger


def test_the_ledger_is_made_compacted(play: Play, driver: Driver, topics: Topics) -> None:
    driver.run(1)
    from confluent_kafka.admin import ConfigResource, ResourceType

    resource = ConfigResource(ResourceType.TOPIC, ledger.NAME)
    config = topics.admin.describe_configs([resource])[resource].result(30)
    assert config["cleanup.policy"].value == "compact"


def test_a_ledger_that_would_forget_is_refused(play: Play, topics: Topics) -> None:
    forgetful = topics.create(1, "forgetful")
    with pytest.raises(LedgerError, match=r"its cleanup\.policy is delete: set it to compact"):
        Driver(replace(play, settings={"sinkLedger": forgetful}), Fault(None)).run(1)


def test_a_ledger_that_cannot_be_created_is_asked_for(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object) -> Any:
        raise AuthorizationError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    monkeypatch.setattr(ledger, "create_topics", refused)
    missing = fresh("missing")
    with pytest.raises(LedgerError, match=f"needs the topic {missing}.*cannot be created.*cleanup.policy=compact"):
        Driver(replace(play, settings={"sinkLedger": missing}), Fault(None)).run(1)


def test_a_ledger_that_may_not_be_looked_at_is_trusted(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refused(*_: object) -> Any:
        raise AuthorizationError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    monkeypatch.setattr(ledger, "describe_configs", refused)
    Driver(replace(play, settings={"sinkLedger": fresh("ledger")}), Fault(None)).run(1)
    assert committed(play) == rows(play, 1)
    assert "is compacted cannot be checked" in caplog.text


def test_a_state_far_behind_in_the_ledger_is_found(play: Play, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.run(2)
    Driver(replace(play, sink=fresh("busy")), Fault(None)).run_batch(0)
    monkeypatch.setattr(ledger, "TAIL_OFFSETS", 2)
    driver.run_batch(1)
    assert Counter(committed(play)).total() == len(rows(play, 2)) + len(rows(play, 1))


def test_sinks_are_listed_and_one_that_is_not_there_cannot_be_settled(play: Play, driver: Driver) -> None:
    driver.run(2)
    assert states_of(play) == [(1, "done")]
    assert play.sink in sinks(play).stdout
    assert "has nothing to settle" in sinks(play, "--settle", play.sink).stderr
    refused = sinks(play, "--settle", "nobody")
    assert refused.exit_code == 1
    assert "there is no sink 'nobody'" in refused.stderr
    assert "no sink has committed anything" in sinks(play, "--ledger", fresh("none")).stderr
