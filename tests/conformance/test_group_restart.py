"""The broker restarts under live groups of every library: they go on where they were, without being restarted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.conformance.groups.fixtures import GROUP_SETTINGS
from tests.conformance.groups.kinds import KCAT, KINDS, Can
from tests.conformance.groups.offsets_topic import generations
from tests.conformance.groups.stage import SharedHosts, Stage, wait_for_coordinator
from tests.conformance.under_test import UnderTest, running

PARTITIONS = 4

# kcat ends when it has lost every connection.
SURVIVORS = [kind for kind in KINDS.values() if kind is not KCAT]

pytestmark = [pytest.mark.peer(kind.peer) for kind in SURVIVORS]


@pytest.fixture
def stages(against: str, shared_hosts: SharedHosts) -> Iterator[Callable[[], Stage]]:
    """Stages on a broker that this test may restart."""
    opened: list[Stage] = []
    settings = {**GROUP_SETTINGS, "group.consumer.session.timeout.ms": "45000"}
    with running(against, settings, apart=True) as broker:
        wait_for_coordinator(broker.address)

        def opening() -> Stage:
            opened.append(Stage(broker, shared_hosts))
            return opened[-1]

        yield opening
        for stage in opened:
            stage.__exit__()


@pytest.mark.timeout(300)
def test_every_group_goes_on_after_a_restart(stages: Callable[[], Stage]) -> None:
    groups = [(kind, stages()) for kind in SURVIVORS]
    broker: UnderTest = groups[0][1].broker
    for kind, stage in groups:
        stage.topic(PARTITIONS, name=f"of-{kind.name}")
        stage.fill(f"of-{kind.name}", PARTITIONS, each=2)
        for _ in range(2):
            stage.member(kind, topics=(f"of-{kind.name}",), session_timeout_ms=45_000)
    for kind, stage in groups:
        stage.until_shared(f"of-{kind.name}", PARTITIONS, *stage.members)
        stage.until_read(f"of-{kind.name}", PARTITIONS, 2)
        if Can.COMMIT in kind.can:
            for member in stage.members:
                member.commit()
    before = {kind.name: generations(broker.address, stage.group) for kind, stage in groups}
    broker.restart()
    wait_for_coordinator(broker.address)
    for kind, stage in groups:
        topic = f"of-{kind.name}"
        stage.fill(topic, PARTITIONS, each=3)
        stage.until_read(topic, PARTITIONS, 5)
        stage.until_shared(topic, PARTITIONS, *stage.members)
        stage.until_stable()
        if Can.COMMIT in kind.can:
            assert all(stage.committed(topic, index) == 2 for index in range(PARTITIONS)), kind.name
            for member in stage.members:
                member.commit()
            assert all(stage.committed(topic, index) == 5 for index in range(PARTITIONS)), kind.name
    for kind, stage in groups:
        after = generations(broker.address, stage.group)
        assert after[: len(before[kind.name])] == before[kind.name]
        assert after == sorted(after)
