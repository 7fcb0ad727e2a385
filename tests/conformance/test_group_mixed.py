"""One group with members of many client libraries: they agree on an assignor by its name, and on everything else."""

from __future__ import annotations

import pytest
from tests.conformance.groups.kinds import (
    CONFLUENT,
    CONFLUENT_848,
    JAVA,
    JAVA_848,
    KINDS,
    LOWWATER,
    LOWWATER_848,
    Kind,
    able,
)
from tests.conformance.groups.stage import Stage

PARTITIONS = 12
SESSION_MS = 4000

pytestmark = [pytest.mark.together, *(pytest.mark.peer(kind.peer) for kind in KINDS.values())]


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_all_libraries_share_one_group(stage: Stage, assignor: str) -> None:
    share(stage, able(protocol="classic", assignor=assignor), assignor=assignor)


def test_all_implementations_of_the_consumer_protocol_share_one_group(stage: Stage) -> None:
    share(stage, [LOWWATER_848, CONFLUENT_848, JAVA_848, LOWWATER_848, CONFLUENT_848], assignor=None)


def test_cooperative_members_of_four_libraries_share_one_group(stage: Stage) -> None:
    share(stage, able(protocol="classic", assignor="cooperative-sticky"), assignor="cooperative-sticky")


def share(stage: Stage, kinds: list[Kind], *, assignor: str | None) -> None:
    """One of each joins, one is killed, one leaves, all others leave in turn: every record is read all the time."""
    topic = stage.topic(PARTITIONS)
    how = {"topics": (topic,), "assignor": assignor, "session_timeout_ms": SESSION_MS}
    members = [stage.member(kind, alone=True, **how) for kind in kinds]
    stage.until_shared(topic, PARTITIONS, *members)
    stage.fill(topic, PARTITIONS, each=3)
    stage.until_read(topic, PARTITIONS, 3)
    killed = members.pop(1)
    killed.kill()
    stage.until_shared(topic, PARTITIONS, *members)
    written = 3
    while len(members) > 1:
        members.pop(0).close()
        stage.until_shared(topic, PARTITIONS, *members)
        stage.fill(topic, PARTITIONS, each=1)
        written += 1
        stage.until_read(topic, PARTITIONS, written)


def test_a_group_that_became_empty_changes_its_protocol(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    stage.fill(topic, 2, each=6)
    for number, kind in enumerate((CONFLUENT, CONFLUENT_848, LOWWATER, LOWWATER_848, JAVA, JAVA_848)):
        member = stage.member(kind, topics=(topic,))
        stage.until(lambda member=member: len(member.owned) == 2, f"{kind} has both partitions")
        member.commit((topic, 0, number + 1))
        assert stage.committed(topic) == number + 1
        member.close()
        stage.until_state("Empty")
