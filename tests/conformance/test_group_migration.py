"""Members of a running group change from the classic to the consumer protocol, one by one, and back."""

from __future__ import annotations

import pytest
from tests.conformance.groups.kinds import CONFLUENT, CONFLUENT_848
from tests.conformance.groups.stage import Stage

PARTITIONS = 6
SESSION_MS = 4000

# Kafka does not let the cooperative members of librdkafka change: their assignments carry user data.
pytestmark = [pytest.mark.together, pytest.mark.peer(CONFLUENT.peer), pytest.mark.only_against("lowwater")]


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_group_changes_its_protocol_while_it_reads(stage: Stage, assignor: str) -> None:
    topic = stage.topic(PARTITIONS)
    classic = {"topics": (topic,), "assignor": assignor, "session_timeout_ms": SESSION_MS}
    members = [stage.member(CONFLUENT, alone=True, **classic) for _ in range(2)]
    stage.until_shared(topic, PARTITIONS, *members)
    written = 0
    for kind in (CONFLUENT_848, CONFLUENT_848, CONFLUENT, CONFLUENT):
        members.pop(0).close()
        how = classic if kind is CONFLUENT else {"topics": (topic,)}
        members.append(stage.member(kind, alone=True, **how))
        stage.until_shared(topic, PARTITIONS, *members)
        written += 2
        stage.fill(topic, PARTITIONS, each=2)
        stage.until_read(topic, PARTITIONS, written)
    assert stage.describe().group_state == "Stable"
