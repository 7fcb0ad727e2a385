"""Suite 8: the wall clock jumps by an hour or ten years, either way; nothing acked is lost, nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crash.plain_client import PRODUCE_VERSION, fetch_request, produce_request
from tests.sim.world import read_log

from lowwater.errors import ErrorCode
from lowwater.log.partition_log import PartitionLog
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest

HOUR_MS = 3_600_000
YEARS_MS = 10 * 365 * 24 * HOUR_MS
HOUSEKEEPING_MS = 400_000
JUMPS = [HOUR_MS, -HOUR_MS, YEARS_MS, -YEARS_MS]


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker({"log.segment.bytes": "2000", "log.retention.check.interval.ms": "1000"})


def create(broker: VirtualBroker, name: str, **settings: str) -> None:
    configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    assert broker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5).topics[0].error_code == 0


def produce(broker: VirtualBroker, topic: str, value: bytes, timestamp: int | None = None) -> Any:
    stamp = broker.clock.now_ms() if timestamp is None else timestamp
    answer = broker.ask(produce_request(topic, value, timestamp=stamp), PRODUCE_VERSION)
    return answer.responses[0].partition_responses[0]


def log_of(broker: VirtualBroker, topic: str) -> PartitionLog:
    return broker.broker.partition(topic, 0).log


def values(broker: VirtualBroker, topic: str) -> dict[int, bytes | None]:
    return {one.offset: one.value for batch in read_log(log_of(broker, topic)) for one in batch.records}


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_records_survive_a_jump_of_the_clock(broker: VirtualBroker, jump_ms: int) -> None:
    create(broker, "orders", retention_ms="-1")
    acked = {}
    for number in range(30):
        if number == 15:
            broker.clock.wall_ms += jump_ms
        value = f"{number}-".encode().ljust(300, b".")
        acked[produce(broker, "orders", value).base_offset] = value
        broker.time.advance(2000)
    broker.time.advance(HOUSEKEEPING_MS)
    assert values(broker, "orders") == acked
    broker.sim_disk.drop_process()
    broker.start()
    assert values(broker, "orders") == acked


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_an_hour_does_not_make_retention_delete(broker: VirtualBroker, jump_ms: int) -> None:
    create(broker, "orders")
    acked = {produce(broker, "orders", b"x" * 300).base_offset for _ in range(10)}
    broker.clock.wall_ms += jump_ms
    broker.time.advance(HOUSEKEEPING_MS)
    assert set(values(broker, "orders")) == acked


def test_ten_years_ahead_retention_deletes_what_is_too_old_and_offsets_go_on(broker: VirtualBroker) -> None:
    create(broker, "orders")
    for _ in range(10):
        produce(broker, "orders", b"x" * 300)
    broker.clock.wall_ms += YEARS_MS
    broker.time.advance(HOUSEKEEPING_MS)
    log = log_of(broker, "orders")
    assert (log.log_start, log.log_end) == (10, 10)
    broker.clock.wall_ms -= YEARS_MS
    assert produce(broker, "orders", b"back").base_offset == 10
    assert values(broker, "orders") == {10: b"back"}


def test_ten_years_behind_records_from_the_future_are_refused_and_accepted_when_the_clock_is_right(
    broker: VirtualBroker,
) -> None:
    create(broker, "orders")
    now_ms = broker.clock.now_ms()
    broker.clock.wall_ms -= YEARS_MS
    assert produce(broker, "orders", b"x", now_ms).error_code == ErrorCode.INVALID_TIMESTAMP
    broker.clock.wall_ms += YEARS_MS
    assert produce(broker, "orders", b"x", now_ms).error_code == 0


@pytest.mark.parametrize("jump_ms", JUMPS)
def test_a_waiting_fetch_ends_by_elapsed_time_not_by_the_clock(broker: VirtualBroker, jump_ms: int) -> None:
    create(broker, "orders")
    request = fetch_request("orders", 0)
    request.max_wait_ms, request.min_bytes = 500, 1
    waiting = broker.send(request, 12)
    broker.clock.wall_ms += jump_ms
    broker.time.advance(499)
    assert not waiting.is_answered
    broker.time.advance(1)
    assert waiting.response.responses[0].partitions[0].error_code == 0
