"""`lowwater.testing.Broker` and the pytest fixture, as a user's tests see them."""

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from lowwater.errors import ErrorCode, LowwaterError
from lowwater.testing import Broker
from lowwater.wire.records import Record

TIMEOUT_S = 30


def produce(broker, topic, value=b"x"):
    errors = []
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    return errors[0]


def read(broker, topic, start, count, partition=0):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, partition, start)])
    messages = []
    while len(messages) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        if message.error():
            raise KafkaException(message.error())
        messages.append(message)
    consumer.close()
    return [(message.offset(), message.key(), message.value()) for message in messages]


def watermarks(broker, topic, partition=0):
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
    found = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT_S)
    consumer.close()
    return found


def test_the_fixture_is_a_running_broker(lowwater_broker):
    assert produce(lowwater_broker, "t") is None
    assert watermarks(lowwater_broker, "t") == (0, 1)


def test_a_partition_spans_any_range_in_one_line(lowwater_broker):
    lowwater_broker.fill("cars", 0, first=6, next=10)
    assert watermarks(lowwater_broker, "cars") == (6, 10)
    assert read(lowwater_broker, "cars", 6, 4) == [
        (offset, b"key-0-%d" % offset, b"value-0-%d" % offset) for offset in range(6, 10)
    ]


def test_a_range_may_be_far_up_long_and_in_any_partition(lowwater_broker):
    first = 5_000_000_000
    lowwater_broker.fill("far", 3, first=first, next=first + 1234)
    assert watermarks(lowwater_broker, "far", 3) == (first, first + 1234)
    assert [offset for offset, _, _ in read(lowwater_broker, "far", first + 1230, 4, 3)] == list(
        range(first + 1230, first + 1234)
    )


def test_generated_records_can_be_ones_own(lowwater_broker):
    lowwater_broker.fill("own", next=3, generate=lambda offset: Record(offset, 1000 + offset, None, b"v%d" % offset))
    assert read(lowwater_broker, "own", 0, 3) == [(0, None, b"v0"), (1, None, b"v1"), (2, None, b"v2")]


def test_an_empty_range_begins_where_it_was_told(lowwater_broker):
    lowwater_broker.fill("empty", first=7, next=7)
    assert watermarks(lowwater_broker, "empty") == (7, 7)
    assert produce(lowwater_broker, "empty") is None
    assert watermarks(lowwater_broker, "empty") == (7, 8)


def test_a_range_that_is_none_is_refused(lowwater_broker):
    with pytest.raises(ValueError, match="first <= next"):
        lowwater_broker.fill("bad", first=3, next=2)


def test_a_partition_with_records_is_not_filled_again(lowwater_broker):
    lowwater_broker.fill("once", next=2)
    with pytest.raises(LowwaterError, match="once-0"):
        lowwater_broker.fill("once", next=2)


def test_an_injected_error_is_answered_as_often_as_asked_and_then_no_more(lowwater_broker):
    AdminClient({"bootstrap.servers": lowwater_broker.bootstrap}).list_topics(timeout=TIMEOUT_S)
    lowwater_broker.faults.fail("CreateTopics", ErrorCode.POLICY_VIOLATION)
    admin = AdminClient({"bootstrap.servers": lowwater_broker.bootstrap})
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic("t", 1)])["t"].result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
    admin.create_topics([NewTopic("t", 1)])["t"].result(TIMEOUT_S)


def test_a_retriable_injected_error_is_ridden_out_by_a_real_producer(lowwater_broker):
    produce(lowwater_broker, "t")
    lowwater_broker.faults.fail("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
    assert produce(lowwater_broker, "t") is None
    assert lowwater_broker.faults.left("Produce") == 0
    assert watermarks(lowwater_broker, "t") == (0, 2)


def test_a_final_injected_error_reaches_the_producer(lowwater_broker):
    produce(lowwater_broker, "t")
    lowwater_broker.faults.fail("Produce", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert produce(lowwater_broker, "t").code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert watermarks(lowwater_broker, "t") == (0, 1)


def test_a_dropped_connection_is_ridden_out_by_a_real_producer(lowwater_broker):
    produce(lowwater_broker, "t")
    lowwater_broker.faults.drop("Produce")
    assert produce(lowwater_broker, "t") is None
    assert lowwater_broker.faults.left("Produce") == 0


def test_a_delayed_produce_is_served_late_and_whole(lowwater_broker):
    produce(lowwater_broker, "t")
    lowwater_broker.faults.delay("Produce", 200)
    assert produce(lowwater_broker, "t", b"late " * 20_000) is None
    assert read(lowwater_broker, "t", 1, 1) == [(1, None, b"late " * 20_000)]


def test_a_fault_of_an_unknown_api_is_refused_with_the_names_there_are(lowwater_broker):
    with pytest.raises(ValueError, match="Fetch"):
        lowwater_broker.faults.drop("Fetsch")


def test_requests_are_counted_by_api(lowwater_broker):
    before = lowwater_broker.requests().get("Produce", 0)
    produce(lowwater_broker, "t")
    assert lowwater_broker.requests()["Produce"] == before + 1


@pytest.mark.parametrize("subprocess", [False, True])
def test_a_stopped_broker_comes_back_on_the_same_port_with_its_records(subprocess):
    with Broker(subprocess=subprocess) as broker:
        assert produce(broker, "t", b"kept") is None
        address = broker.bootstrap
        broker.restart()
        assert broker.bootstrap == address
        assert read(broker, "t", 0, 1) == [(0, None, b"kept")]


@pytest.mark.parametrize("subprocess", [False, True])
def test_a_killed_broker_comes_back_with_its_records(subprocess):
    with Broker(subprocess=subprocess) as broker:
        assert produce(broker, "t", b"kept") is None
        broker.kill()
        broker.start()
        assert read(broker, "t", 0, 1) == [(0, None, b"kept")]


def test_what_needs_a_thread_says_so():
    with Broker(subprocess=True) as broker, pytest.raises(LowwaterError, match="subprocess=False"):
        broker.fill("t", next=1)


def test_a_setting_that_does_not_exist_is_refused_at_once():
    with pytest.raises(LowwaterError, match=r"num\.partition"):
        Broker({"num.partition": "3"})


def test_a_hundred_brokers_in_a_row_leave_no_threads_and_no_files(tmp_path):
    import os
    import threading

    with Broker():
        pass
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(100):
        with Broker() as broker:
            assert broker.port
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) <= files
