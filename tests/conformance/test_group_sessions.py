"""What keeps a member's session alive, and what does not."""

from __future__ import annotations

import pytest
from tests.conformance.asking import eventually
from tests.conformance.groups.raw_member import RawMember
from tests.conformance.groups.stage import Stage

from lowwater.errors import ErrorCode
from lowwater.wire.messages import ConsumerGroupHeartbeatRequest

pytestmark = pytest.mark.together

SESSION_MS = 2000
REBALANCE_MS = 60_000


@pytest.mark.parametrize("is_mixed", [False, True], ids=["classic", "mixed"])
def test_a_sync_that_is_refused_does_not_prolong_a_session(stage: Stage, is_mixed: bool) -> None:
    topic = stage.topic(2)
    member = stage.raw_member([topic], session_timeout_ms=SESSION_MS)
    assert member.join().error_code == ErrorCode.NONE
    assert member.sync({member.member_id: {topic: [0, 1]}}).error_code == ErrorCode.NONE
    if is_mixed:
        _enters(member, topic)
    member.generation += 7
    assert member.sync().error_code == ErrorCode.ILLEGAL_GENERATION
    # It asks all the time; if that counted it would stay.
    eventually(lambda: member.sync().error_code == ErrorCode.UNKNOWN_MEMBER_ID)


def _enters(beside: RawMember, topic: str) -> None:
    """A member of the newer protocol, by the connection of another."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=beside.group,
        member_id="of-the-newer-protocol",
        member_epoch=0,
        rebalance_timeout_ms=REBALANCE_MS,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    assert beside.wire.ask(request).error_code == ErrorCode.NONE
