"""What consumers put into JoinGroup and SyncGroup: read where it can be, never trusted."""

import pytest

from lowwater.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["a", "b"],
    user_data=b"u",
    owned_partitions=[TopicPartition(topic="a", partitions=[0, 2])],
    generation_id=4,
    rack_id="r",
)


def test_the_newest_subscription_is_read_as_it_was_written() -> None:
    assert decode_subscription(encode_subscription(SUBSCRIPTION)) == SUBSCRIPTION


@pytest.mark.parametrize("version", range(4))
def test_an_older_subscription_lacks_what_it_cannot_say(version: int) -> None:
    read = decode_subscription(encode_subscription(SUBSCRIPTION, version))
    assert read is not None
    assert read.topics == ["a", "b"]
    assert read.owned_partitions == (SUBSCRIPTION.owned_partitions if version >= 1 else [])
    assert read.generation_id == (4 if version >= 2 else -1)
    assert read.rack_id == ("r" if version >= 3 else None)


def test_a_subscription_from_the_future_is_read_as_far_as_it_is_known() -> None:
    data = b"\0\x09" + encode_subscription(SUBSCRIPTION)[2:] + b"new fields"
    assert decode_subscription(data) == SUBSCRIPTION


def test_an_assignment_is_read_as_it_was_written() -> None:
    assignment = ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic="a", partitions=[1])])
    assert decode_assignment(encode_assignment(assignment, 0)) == assignment


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0\0\0\1", b"\0\1\x7f\xff\xff\xff", b"hello"])
def test_what_is_not_of_a_consumer_is_nothing(data: bytes) -> None:
    assert decode_subscription(data) is None
    assert decode_assignment(data) is None
