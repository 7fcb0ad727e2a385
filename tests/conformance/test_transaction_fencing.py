"""Who may go on with a transactional id: a newer instance, an expired transaction, each as the library is told."""

from __future__ import annotations

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.kinds import by_each
from tests.conformance.transactions.scene import Scene

from lowwater.errors import ErrorCode

# The oldest versions of the requests know no PRODUCER_FENCED, and kafkajs speaks those only.
FENCED = {"kafkajs": ErrorCode.INVALID_PRODUCER_EPOCH}
# On the new path it is the partition that refuses.
FENCED_SEND = {**FENCED, "java": ErrorCode.INVALID_PRODUCER_EPOCH, "lowwater": ErrorCode.INVALID_PRODUCER_EPOCH}
# On the new path an abort bumps the epoch as an end of the producer's own would, so its commit looks repeated.
EXPIRED = {**FENCED, "java": ErrorCode.INVALID_TXN_STATE, "lowwater": ErrorCode.INVALID_TXN_STATE}

# Some make an error of their own of what they did not expect.
TOLD_IN_WORDS = {
    "kafka-python": "InvalidTransactionTimeoutError",
    "java": "transaction.max.timeout.ms",
    "java-v1": "transaction.max.timeout.ms",
}


@by_each()
def test_a_second_instance_takes_over_and_ends_what_the_first_began(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    first = scene.producer()
    first.begin()
    first.send(topic, b"of the first")
    second = scene.producer()
    second.begin()
    second.send(topic, b"of the second")
    second.commit()
    with pytest.raises(ClientError) as refusal:
        first.commit()
    assert refusal.value.code == FENCED.get(scene.kind.name, ErrorCode.PRODUCER_FENCED)
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"of the second"]


@by_each()
def test_a_fenced_instance_gets_no_record_in(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    first = scene.producer()
    first.begin()
    first.send(topic, b"one")
    first.commit()
    scene.producer()
    first.begin()
    with pytest.raises(ClientError) as refusal:
        first.send(topic, b"two")
    assert refusal.value.code == FENCED_SEND.get(scene.kind.name, ErrorCode.PRODUCER_FENCED)
    scene.until_ended((topic, 0))
    assert scene.view(topic, committed=False) == [b"one"]


@by_each()
def test_a_transaction_that_lasts_too_long_is_aborted(scene: Scene) -> None:
    topic = scene.topic(partitions=1)
    producer = scene.producer(timeout_ms=1000)
    producer.begin()
    producer.send(topic, b"late")
    scene.until_transaction("CompleteAbort")
    with pytest.raises(ClientError) as refusal:
        producer.commit()
    assert refusal.value.code == EXPIRED.get(scene.kind.name, ErrorCode.PRODUCER_FENCED)
    scene.until_ended((topic, 0))
    assert scene.view(topic) == []
    assert scene.view(topic, committed=False) == [b"late"]
    successor = scene.producer()
    successor.begin()
    successor.send(topic, b"in time")
    successor.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"in time"]


@by_each()
def test_a_timeout_above_the_brokers_is_refused(scene: Scene) -> None:
    with pytest.raises(ClientError) as refusal:
        scene.producer(timeout_ms=900_001)
    if scene.kind.name in TOLD_IN_WORDS:
        assert TOLD_IN_WORDS[scene.kind.name] in str(refusal.value)
    else:
        assert refusal.value.code == ErrorCode.INVALID_TRANSACTION_TIMEOUT
