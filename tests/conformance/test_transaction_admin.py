"""What operators see of transactions, and how they end one that hangs: admin clients and Kafka's own tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conformance.asking import batch_of, new_producer, now_ms, produce
from tests.conformance.clients.base import ClientError
from tests.conformance.raw import Wire
from tests.conformance.test_console_tools import Tools
from tests.conformance.transactions.admins import ADMINS, JavaAdmin, TransactionAdmin
from tests.conformance.transactions.face import Place
from tests.conformance.transactions.kinds import KINDS, by
from tests.conformance.transactions.scene import Scene
from tests.conformance.under_test import UnderTest, running

from lowwater.errors import ErrorCode
from lowwater.wire.records import TRANSACTIONAL

TOOL = "org.apache.kafka.tools.TransactionsCommand"
NOT_RUNNING = -1
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


def by_each_admin(test: Callable[..., None]) -> Callable[..., None]:
    chosen = [pytest.param(kind, marks=pytest.mark.peer(kind.peer), id=kind.name) for kind in ADMINS.values()]
    decorated: Callable[..., None] = by("confluent")(pytest.mark.parametrize("admin_kind", chosen)(test))
    return decorated


@by_each_admin
def test_transactions_are_listed_by_state_producer_age_and_name(
    scene: Scene, admin_kind: type[TransactionAdmin]
) -> None:
    admin, topic, id = admin_kind(scene.broker.bootstrap), scene.topic(partitions=1), scene.transactional_id
    producer = scene.producer()
    assert admin.listed(pattern=f"{id}$") == {id: "Empty"}
    producer.begin()
    producer.send(topic, b"inside")
    assert admin.listed(pattern=f"{id}$") == {id: "Ongoing"}
    assert admin.listed(states=["Ongoing"])[id] == "Ongoing"
    assert id not in admin.listed(states=["Empty", "CompleteCommit"])
    producer_id = admin.described(id).producer_id
    assert admin.listed(producer_id=producer_id) == {id: "Ongoing"}
    assert id not in admin.listed(duration_ms=MINUTE_MS)
    assert admin.listed(duration_ms=0)[id] == "Ongoing"
    producer.commit()
    scene.until_transaction("CompleteCommit")
    assert id not in admin.listed(states=["Ongoing"])


@by_each_admin
def test_a_transaction_is_described(scene: Scene, admin_kind: type[TransactionAdmin]) -> None:
    admin, topic, id = admin_kind(scene.broker.bootstrap), scene.topic(partitions=3), scene.transactional_id
    with pytest.raises(ClientError) as refusal:
        admin.described(id)
    assert refusal.value.code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    producer = scene.producer(timeout_ms=54_321)
    idle = admin.described(id)
    assert (idle.state, idle.is_running, idle.places) == ("Empty", False, frozenset())
    producer.begin()
    producer.send(topic, b"inside", partition=0)
    producer.send(topic, b"inside", partition=2)
    busy = admin.described(id)
    assert (busy.state, busy.is_running, busy.timeout_ms) == ("Ongoing", True, 54_321)
    assert busy.places == {(topic, 0), (topic, 2)}
    assert busy.producer_id == idle.producer_id
    producer.abort()
    scene.until_transaction("CompleteAbort")
    assert admin.described(id).places == frozenset()


@by_each_admin
def test_producers_of_a_partition_tell_their_open_transactions(
    scene: Scene, admin_kind: type[TransactionAdmin]
) -> None:
    admin, topic = admin_kind(scene.broker.bootstrap), scene.topic(partitions=1)
    producer = scene.producer()
    scene.plain(topic, b"before")
    producer.begin()
    producer.send(topic, b"inside")
    [active] = admin.producers((topic, 0))
    assert active.first_offset == 1
    assert active.producer_id == admin.described(scene.transactional_id).producer_id
    producer.commit()
    scene.until_ended((topic, 0))
    [active] = admin.producers((topic, 0))
    assert active.first_offset == NOT_RUNNING
    assert active.coordinator_epoch >= 0


@pytest.mark.peer("kafka")
@by("confluent")
def test_an_admin_fences_a_producer_and_so_ends_its_transaction(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    producer.begin()
    producer.send(topic, b"inside")
    JavaAdmin(scene.broker.bootstrap).ask("fence", id=scene.transactional_id)
    with pytest.raises(ClientError) as refusal:
        producer.commit()
    assert refusal.value.code == ErrorCode.PRODUCER_FENCED
    scene.until_ended((topic, 0))
    assert scene.view(topic) == []


@pytest.mark.peer("kafka")
@by("confluent")
def test_an_admin_terminates_a_transaction(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer()
    producer.begin()
    producer.send(topic, b"inside")
    JavaAdmin(scene.broker.bootstrap).ask("terminate", id=scene.transactional_id)
    scene.until_ended((topic, 0))
    assert scene.view(topic) == []
    with pytest.raises(ClientError):
        producer.commit()


@pytest.fixture(scope="module")
def trusting_broker(against: str) -> Iterator[UnderTest]:
    """It asks nobody whether a transactional batch belongs to a transaction, so that one can be left hanging."""
    with running(against, {"transaction.partition.verification.enable": "false"}) as broker:
        yield broker


@pytest.fixture
def hanging(trusting_broker: UnderTest) -> Iterator[tuple[Scene, Place, int]]:
    """A partition with an open transaction of which no coordinator knows, and its producer id."""
    with Scene(trusting_broker, KINDS[0]) as scene:
        topic = scene.topic(partitions=1)
        with Wire(trusting_broker.address) as wire:
            producer_id, epoch = new_producer(wire)
            header = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
            batch = batch_of(b"hangs", timestamp=now_ms() - HOUR_MS, attributes=TRANSACTIONAL, **header)
            assert produce(wire, topic, batch, transactional_id="nobody's").error_code == 0
        scene.plain(topic, b"behind it")
        assert scene.last_stable(topic) == 0
        yield scene, (topic, 0), producer_id


@pytest.mark.peer("confluent")
@pytest.mark.parametrize(
    "admin_kind", [pytest.param(each, marks=pytest.mark.peer(each.peer), id=each.name) for each in ADMINS.values()]
)
def test_an_admin_aborts_a_hanging_transaction(
    hanging: tuple[Scene, Place, int], admin_kind: type[TransactionAdmin]
) -> None:
    scene, place, producer_id = hanging
    admin_kind(scene.broker.bootstrap).abort_hanging(place, producer_id)
    scene.until_ended(place)
    assert scene.view(*place) == [b"behind it"]
    assert scene.view(*place, committed=False) == [b"hangs", b"behind it"]


@pytest.mark.peer("confluent")
@pytest.mark.peer("kafka")
def test_kafka_transactions_finds_describes_and_aborts_a_hanging_transaction(
    hanging: tuple[Scene, Place, int],
) -> None:
    scene, (topic, partition), producer_id = hanging
    tools, where = Tools(scene.broker), ("--topic", topic, "--partition", str(partition))
    found = [line.split() for line in tools.run(TOOL, "find-hanging", "--topic", topic).splitlines()]
    assert [row[:3] for row in found[1:]] == [[topic, str(partition), str(producer_id)]]
    header, row = [line.split() for line in tools.run(TOOL, "describe-producers", *where).splitlines()]
    told = dict(zip(header, row, strict=True))
    assert told["ProducerId"] == str(producer_id)
    assert told["CurrentTransactionStartOffset"] == "0"
    tools.run(TOOL, "abort", *where, "--start-offset", "0")
    scene.until_ended((topic, partition))
    assert scene.view(topic, partition) == [b"behind it"]


@pytest.mark.peer("kafka")
@by("confluent")
def test_kafka_transactions_lists_and_describes(scene: Scene) -> None:
    tools, topic, id = Tools(scene.broker), scene.topic(partitions=1), scene.transactional_id
    producer = scene.producer(timeout_ms=54_321)
    producer.begin()
    producer.send(topic, b"inside")
    listed = [line.split() for line in tools.run(TOOL, "list").splitlines()]
    assert [row[-1] for row in listed if row[0] == id] == ["Ongoing"]
    header, row = [line.split() for line in tools.run(TOOL, "describe", "--transactional-id", id).splitlines()]
    told = dict(zip(header, row, strict=True))
    assert (told["TransactionState"], told["TransactionTimeoutMs"]) == ("Ongoing", "54321")
    assert told["TopicPartitions"] == f"{topic}-0"
    producer.abort()
