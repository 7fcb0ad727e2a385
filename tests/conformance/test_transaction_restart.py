"""Transactions that are open while the broker restarts go on, and end as their producers say."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from tests.conformance.groups.stage import wait_for_coordinator
from tests.conformance.transactions.face import MemberOf, Transactor
from tests.conformance.transactions.fixtures import TRANSACTION_SETTINGS
from tests.conformance.transactions.kinds import KINDS, NEWEST, Kind
from tests.conformance.transactions.scene import Scene, wait_for_transactions
from tests.conformance.under_test import running
from tests.conftest import PEERS

from lowwater.errors import ErrorCode

ABLE = [kind for kind in KINDS if kind.version == NEWEST]


@dataclass(frozen=True, slots=True)
class Survivor:
    """Before the restart: a transaction that committed, one that aborted, and one still open with two producers."""

    scene: Scene
    topic: str
    committing: Transactor
    aborting: Transactor


@pytest.fixture(scope="module")
def survivors(against: str) -> Iterator[dict[str, Survivor]]:
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(running(against, TRANSACTION_SETTINGS))
        wait_for_coordinator(broker.address)
        wait_for_transactions(broker.address)
        found = {}
        for kind in ABLE:
            if PEERS[kind.transactor.peer]() is None:
                found[kind.name] = _begun(stack.enter_context(Scene(broker, kind)))
        broker.restart()
        wait_for_coordinator(broker.address)
        yield found


def _begun(scene: Scene) -> Survivor:
    topic = scene.topic(partitions=1)
    committing, aborting = scene.producer(), scene.producer(id=f"{scene.transactional_id}-aborting")
    for producer in (committing, aborting):
        producer.begin()
        producer.send(topic, b"before")
        (producer.commit if producer is committing else producer.abort)()
    scene.until_ended((topic, 0))
    for producer in (committing, aborting):
        producer.begin()
        producer.send(topic, b"committed" if producer is committing else b"aborted")
        producer.send_offsets(MemberOf(scene.group), {(topic, 0): 1 if producer is committing else 2})
    return Survivor(scene, topic, committing, aborting)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.peer(kind.transactor.peer), id=kind.name) for kind in ABLE]
)
def test_open_transactions_outlive_a_restart_of_the_broker(survivors: dict[str, Survivor], kind: Kind) -> None:
    survivor = survivors[kind.name]
    scene, topic = survivor.scene, survivor.topic
    assert scene.view(topic) == [b"before"]
    assert scene.stable_offset((topic, 0)) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    survivor.aborting.abort()
    survivor.committing.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"before", b"committed"]
    scene.until_committed(topic, 0, 1)
    for producer in (survivor.aborting, survivor.committing):
        producer.begin()
        producer.send(topic, b"after")
        producer.commit()
    scene.until_ended((topic, 0))
    assert scene.view(topic) == [b"before", b"committed", b"after", b"after"]
