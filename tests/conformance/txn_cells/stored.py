"""Transactional ids as a broker finds them when it starts: with their epochs used up, or in the middle of an end."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import IntEnum

from tests.conformance.asking import now_ms
from tests.conformance.raw import Wire
from tests.conformance.txn_cells.asks import Add, AddOffsets, CommitOffset, Describe, End, Init, Listed, Write
from tests.conformance.txn_cells.play import Cell, Play, State, Stored

from lowwater.transactions.records import TransactionLogPartitions, TransactionLogValue, encode
from lowwater.wire.frame import encode_request_header
from lowwater.wire.messages import ProduceRequest
from lowwater.wire.messages.produce import PartitionProduceData, TopicProduceData
from lowwater.wire.plain_batch import build_plain_batch
from lowwater.wire.schema import encoder

STATE_TOPIC = "__transaction_state"
# Who calls itself so may write to internal topics.
ADMIN_CLIENT = "__admin_client"
PRODUCE, PRODUCE_VERSION = 0, 12
LAST_EPOCH = 32766
LASTING_MS = 900_000
FIRST_NUMBER = 1_000_000
FIRST_PRODUCER_ID = 1_000_000_000
OTHERS_APART = 1_000_000_000


class Status(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5


BUSY = {"in_partition": True}
NEW = {"client_version": 2}
STATES = tuple(
    State(f"Stored, {name}", stored=stored)
    for name, stored in {
        "empty in the last epoch but one": Stored(Status.EMPTY, LAST_EPOCH - 1),
        "empty in the last epoch": Stored(Status.EMPTY, LAST_EPOCH),
        "ongoing in the last epoch but one": Stored(Status.ONGOING, LAST_EPOCH - 1, **BUSY),
        "ongoing in the last epoch": Stored(Status.ONGOING, LAST_EPOCH, **BUSY),
        "ongoing in the last epoch but one, new path": Stored(Status.ONGOING, LAST_EPOCH - 1, **BUSY, **NEW),
        "ongoing in the last epoch, new path": Stored(Status.ONGOING, LAST_EPOCH, **BUSY, **NEW),
        "committed in the last epoch": Stored(Status.COMPLETE_COMMIT, LAST_EPOCH),
        "committed in the last epoch, new path": Stored(Status.COMPLETE_COMMIT, LAST_EPOCH, **NEW),
        "aborted in the last epoch, new path": Stored(Status.COMPLETE_ABORT, LAST_EPOCH, **NEW),
        "committed with the producer before": Stored(Status.COMPLETE_COMMIT, 0, has_previous=True, **NEW),
        "aborted with the producer before": Stored(Status.COMPLETE_ABORT, 0, has_previous=True, **NEW),
        "about to commit": Stored(Status.PREPARE_COMMIT, 5, **BUSY),
        "about to abort": Stored(Status.PREPARE_ABORT, 5, **BUSY),
        "about to commit, new path": Stored(Status.PREPARE_COMMIT, 6, **BUSY, **NEW),
        "about to abort, new path": Stored(Status.PREPARE_ABORT, 6, **BUSY, **NEW),
        "about to commit, and then another producer": Stored(
            Status.PREPARE_COMMIT, LAST_EPOCH + 1, has_next=True, **BUSY, **NEW
        ),
        "committed, in the old form": Stored(Status.COMPLETE_COMMIT, 3, form=0),
        "ongoing, in the old form": Stored(Status.ONGOING, 3, form=0, **BUSY),
    }.items()
)
LOOK = (Describe(), Listed())
RETRY = {"commit": True, "abort": False}


def cells() -> Iterator[Cell]:
    for state in STATES:
        yield Cell("Describe", state, Describe())
        yield Cell("Init of a new instance", state, Init("N", v=5), then=(*LOOK, Init("N"), *LOOK))
        yield Cell("Init of who goes on", state, Init("A", knows=True, v=5), then=(*LOOK, Init("N"), *LOOK))
        yield Cell("Add", state, Add(), then=LOOK, versions=(3, 5))
        yield Cell("Add offsets", state, AddOffsets(v=4), then=LOOK)
        yield Cell("Commit an offset", state, CommitOffset(v=5), then=LOOK)
        yield Cell("Write", state, Write(v=12), then=(*LOOK, End(), *LOOK, Write(), *LOOK))
        for name, commit in RETRY.items():
            yield Cell(f"End by {name}", state, End(commit=commit), then=(*LOOK, Add(v=3), *LOOK), versions=(4, 5))
            yield Cell(
                f"End by {name}, and again in the epoch before", state, End(commit=commit, v=5), _again(commit=commit)
            )
    for state in STATES:
        if state.stored is not None and state.stored.has_previous:
            yield from _before(state)


def _again(*, commit: bool) -> tuple[Describe | End, ...]:
    return Describe(), End(commit=commit, epoch_by=-1), Describe()


def _before(state: State) -> Iterator[Cell]:
    """What the producer asks that was not told of its new id."""
    for name, commit in RETRY.items():
        yield Cell(f"End by {name} of the one before", state, End("before", commit=commit), LOOK, versions=(4, 5))
    yield Cell("Init of the one before", state, Init("before", knows=True, v=5), then=LOOK)
    yield Cell("Add of the one before", state, Add("before"), then=LOOK, versions=(3, 5))
    yield Cell("Write of the one before", state, Write("before", v=12), then=LOOK)


CELLS = tuple(cells())
_NUMBERS = {
    (cell.title, version): FIRST_NUMBER + number
    for number, (cell, version) in enumerate((cell, version) for cell in CELLS for version in cell.all_versions())
}


def number_of(cell: Cell, version: int) -> int:
    """Of a run: its id is stored before it is played."""
    return _NUMBERS[cell.title, version]


def know_stored(play: Play, stored: Stored, number: int) -> None:
    """The cast of a run that begins with what is stored."""
    producer_id = FIRST_PRODUCER_ID + number
    play.producers["A"] = producer_id, stored.epoch
    play.producers["before"] = producer_id - OTHERS_APART, LAST_EPOCH
    play.names |= {
        producer_id: "producer 1",
        producer_id - OTHERS_APART: "the producer before",
        producer_id + OTHERS_APART: "the next producer",
    }


def _value(stored: Stored, number: int, topic: str) -> TransactionLogValue:
    producer_id = FIRST_PRODUCER_ID + number
    partitions = [TransactionLogPartitions(topic=topic, partition_ids=[0])] if stored.in_partition else []
    now = now_ms()
    return TransactionLogValue(
        producer_id=producer_id,
        previous_producer_id=producer_id - OTHERS_APART if stored.has_previous else -1,
        next_producer_id=producer_id + OTHERS_APART if stored.has_next else -1,
        producer_epoch=stored.epoch,
        transaction_timeout_ms=LASTING_MS,
        transaction_status=stored.status,
        transaction_partitions=None if stored.status == Status.EMPTY else partitions,
        transaction_last_update_timestamp_ms=now,
        transaction_start_timestamp_ms=-1 if stored.status == Status.EMPTY else now,
        client_transaction_version=stored.client_version,
    )


def store(wire: Wire, cells: Collection[Cell], topic: str) -> None:
    """Write the records of all runs of these cells; their coordinator reads them when it starts."""
    records = [
        encode(f"tx-{number}", _value(cell.state.stored, number, topic), transaction_version=cell.state.stored.form)
        for cell in cells
        for version in cell.all_versions()
        if cell.state.stored is not None
        for number in [number_of(cell, version)]
    ]
    data = PartitionProduceData(index=0, records=memoryview(build_plain_batch(records, now_ms())))
    topics = [TopicProduceData(name=STATE_TOPIC, partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics)
    body = encoder(ProduceRequest, PRODUCE_VERSION)(request)
    wire.send_frame(encode_request_header(PRODUCE, PRODUCE_VERSION, 0, ADMIN_CLIENT) + body)
    [answer] = wire.receive(PRODUCE, PRODUCE_VERSION, 0).responses
    assert answer.partition_responses[0].error_code == 0, answer
