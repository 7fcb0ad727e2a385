"""Whatever stands in `__consumer_offsets`: a broker starts, skips what it cannot read, and knows what it can."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator

import pytest
from tests.conformance.golden.instances import Style, instance
from tests.fuzz.test_decoders import mutated
from tests.unit.broker.group_talk import beat, commit, fetch, stable_member
from tests.unit.broker.talk import create, partition_of

from lowwater.errors import ErrorCode
from lowwater.groups import record_schemas as schemas
from lowwater.outcome import StateRecord
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from lowwater.wire.plain_batch import build_plain_batch
from lowwater.wire.schema import declaration_of, encoder

OFFSETS = "__consumer_offsets"
CONFIG = {"group.initial.rebalance.delay.ms": "0"}
KINDS = [
    (schemas.OffsetCommitKey, schemas.OffsetCommitValue),
    (schemas.GroupMetadataKey, schemas.GroupMetadataValue),
    (schemas.ConsumerGroupMetadataKey, schemas.ConsumerGroupMetadataValue),
    (schemas.ConsumerGroupMemberMetadataKey, schemas.ConsumerGroupMemberMetadataValue),
    (schemas.ConsumerGroupTargetAssignmentMetadataKey, schemas.ConsumerGroupTargetAssignmentMetadataValue),
    (schemas.ConsumerGroupTargetAssignmentMemberKey, schemas.ConsumerGroupTargetAssignmentMemberValue),
    (schemas.ConsumerGroupCurrentMemberAssignmentKey, schemas.ConsumerGroupCurrentMemberAssignmentValue),
    (schemas.ConsumerGroupRegularExpressionKey, schemas.ConsumerGroupRegularExpressionValue),
]
ROUNDS = 25
RECORDS = 40


def hostile_records(rng: random.Random) -> Iterator[StateRecord]:
    """Plausible records with wrong contents, harmed ones, and noise."""
    for _ in range(RECORDS):
        key_class, value_class = rng.choice(KINDS)
        version = rng.randint(declaration_of(value_class).version_min, declaration_of(value_class).version_max)
        style = rng.choice((Style.FULL, Style.MIXED, Style.NULLS))
        key = declaration_of(key_class).key.to_bytes(2, "big")
        key += encoder(key_class, 0)(instance(key_class, 0, style, rng))
        value = version.to_bytes(2, "big") + encoder(value_class, version)(instance(value_class, version, style, rng))
        kind = rng.randrange(5)
        if kind == 1:
            value = mutated(value, rng)
        elif kind == 2:
            key = mutated(key, rng)
        elif kind == 3:
            key, value = rng.randbytes(rng.randrange(12)), rng.randbytes(rng.randrange(30))
        yield StateRecord(key, None if kind == 4 and rng.random() < 0.5 else value)


def broker_with_groups() -> VirtualBroker:
    broker = VirtualBroker(CONFIG)
    create(broker, "t", 2)
    assert commit(broker, "simple", 7) == ErrorCode.NONE
    return broker


def start_after(broker: VirtualBroker, *batches: bytearray) -> None:
    for batch in batches:
        partition_of(broker, OFFSETS).append_own(batch, broker.clock.now_ms())
    broker.stop()
    broker.sim_disk.drop_process()
    broker.start()
    broker.time.settle()


def ask_everything(broker: VirtualBroker) -> None:
    names = [group.group_id for group in broker.ask(ListGroupsRequest(), 5).groups]
    broker.ask(DescribeGroupsRequest(groups=names), 6)
    broker.ask(ConsumerGroupDescribeRequest(group_ids=names), 1)
    broker.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=one, topics=None) for one in names]), 9)
    broker.time.advance(100_000)  # sessions end, and members of invented groups with them


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_broker_starts_from_any_records_and_knows_those_it_can_read(seed: int) -> None:
    broker = broker_with_groups()
    start_after(broker, build_plain_batch(list(hostile_records(random.Random(seed))), broker.clock.now_ms()))
    _knows_its_groups(broker)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_broker_starts_from_any_records_in_transactions(seed: int) -> None:
    broker = broker_with_groups()
    rng = random.Random(seed)
    partition = partition_of(broker, OFFSETS)
    for producer_id in rng.choices(range(4), k=8):
        if rng.random() < 0.6:
            batch = build_plain_batch(list(hostile_records(rng)), broker.clock.now_ms(), producer=(producer_id, 0))
            partition.append_own(batch, broker.clock.now_ms())
        else:
            partition.append_marker(producer_id, 0, rng.random() < 0.5, 0, broker.clock.now_ms())
    start_after(broker)
    _knows_its_groups(broker)


def _knows_its_groups(broker: VirtualBroker) -> None:
    assert fetch(broker, "simple") == 7
    ask_everything(broker)
    assert commit(broker, "simple", 8) == ErrorCode.NONE
    member_id, generation = stable_member(broker, "new")
    assert beat(broker, "new", member_id, generation) == ErrorCode.NONE


def test_a_record_that_cannot_be_read_is_skipped_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    broker = broker_with_groups()
    with caplog.at_level(logging.WARNING):
        start_after(broker, build_plain_batch([StateRecord(b"\0\2\0\5ab", b"\0\3")], broker.clock.now_ms()))
    assert "a record of __consumer_offsets-0 is skipped" in caplog.text
    assert fetch(broker, "simple") == 7


def test_an_offset_that_cannot_be_read_was_never_committed() -> None:
    broker = broker_with_groups()
    key = b"\0\1" + b"\0\6broken" + b"\0\1t" + bytes(4)
    start_after(broker, build_plain_batch([StateRecord(key, b"\0\4 what is this")], broker.clock.now_ms()))
    assert fetch(broker, "broken") == -1
    assert commit(broker, "broken", 3) == ErrorCode.NONE
    assert fetch(broker, "broken") == 3
