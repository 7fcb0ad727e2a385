"""Power cuts at every disk operation of a transaction: it is whole or not at all, offsets included, and it ends."""

from __future__ import annotations

import pytest
from tests.unit.broker.group_talk import fetch
from tests.unit.broker.talk import create
from tests.unit.broker.txn_talk import OK, TxnProducer, committed_values, last_stable, states

from lowwater.testing.simdisk import CrashState, SimDisk
from lowwater.testing.virtual_time import VirtualBroker

Seen = tuple[list[bytes | None], list[bytes | None], int | object]
WHOLE: Seen = ([b"before", b"a"], [b"b"], 5)
NOTHING: Seen = ([b"before"], [], -1)


def prepared(*, moves_on: bool) -> TxnProducer:
    broker = VirtualBroker({})
    create(broker, "t")
    create(broker, "u")
    producer = TxnProducer(broker, moves_on=moves_on).begin()
    assert producer.produce("t", b"before") is OK
    assert producer.commit_offset("h", 1) is OK
    assert producer.end(commit=True) is OK
    return producer


def transaction(producer: TxnProducer, *, commit: bool) -> tuple[int, int]:
    """How many disk operations there were before it began, and when its end was acknowledged."""
    disk = producer.broker.sim_disk
    began = disk.operations
    assert producer.produce("t", b"a") is OK
    assert producer.produce("u", b"b") is OK
    assert producer.commit_offset("g", 5) is OK
    producer.broker.offload.held = True
    sent = producer.send_end(commit=commit)
    while not sent.is_answered:
        producer.broker.time.settle()
        producer.broker.offload.step()
        producer.broker.time.turn()
    answered = disk.operations
    producer.broker.offload.release()
    producer.broker.time.settle()
    assert states(producer.broker) == {"x": "CompleteCommit" if commit else "CompleteAbort"}
    return began, answered


def seen_after(disk: SimDisk, state: CrashState, *, moves_on: bool) -> Seen:
    """What readers see when a new instance has begun and nothing is left to do."""
    broker = VirtualBroker({}, disk=disk.after(state))
    broker.time.advance(1_000)
    TxnProducer(broker, moves_on=moves_on).begin()
    broker.time.advance(1_000)
    for topic in ("t", "u"):
        assert last_stable(broker, topic) == broker.broker.partition(topic, 0).log.log_end, f"{topic} hangs: {state}"
    return committed_values(broker, "t"), committed_values(broker, "u"), fetch(broker, "g")


@pytest.mark.parametrize("moves_on", [True, False], ids=["new", "old"])
@pytest.mark.parametrize("commit", [True, False], ids=["commit", "abort"])
def test_after_a_power_cut_at_any_step_a_transaction_is_whole_or_not_at_all(moves_on: bool, commit: bool) -> None:
    producer = prepared(moves_on=moves_on)
    began, answered = transaction(producer, commit=commit)
    disk = producer.broker.sim_disk
    checked = 0
    for at in range(began, disk.operations + 1):
        allowed = _allowed(commit=commit, is_answered=at >= answered)
        for state in disk.telling_states(at):
            assert seen_after(disk, state, moves_on=moves_on) in allowed, state
            checked += 1
    assert checked > 2 * (disk.operations - began)


def _allowed(*, commit: bool, is_answered: bool) -> list[Seen]:
    if not commit:
        return [NOTHING]
    return [WHOLE] if is_answered else [NOTHING, WHOLE]
