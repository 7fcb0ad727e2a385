"""Static members: they come back without a rebalance, and there is only one of each."""

from __future__ import annotations

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.groups.kinds import Can, Kind, played_by
from tests.conformance.groups.stage import Stage

from lowwater.errors import ErrorCode

QUIET_MS = 600


@played_by(Can.STATIC)
def test_a_static_member_that_restarts_causes_no_rebalance(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    how = {"topics": (topic,), "session_timeout_ms": 30_000}
    first = stage.member(kind, instance="one", **how)
    second = stage.member(kind, instance="two", **how)
    stage.until_shared(topic, 4, first, second)
    stage.until_stable()
    places, seen, generation = set(first.owned), len(second.rebalances()), stage.generation(kind)
    first.close()
    again = stage.member(kind, instance="one", **how)
    stage.until(lambda: again.owned == places, "the same partitions as before")
    stage.fill(topic, 4, each=1)
    stage.until_read(topic, 4, 1)
    stage.pass_ms(QUIET_MS)
    assert len(second.rebalances()) == seen, second.story()
    assert stage.generation(kind) == generation


@played_by(Can.STATIC, Can.COMMIT, protocol="classic")
def test_a_second_member_with_the_same_instance_id_fences_the_first(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    # aiokafka's heartbeats do not name the instance: it is told that it is unknown, and would take its place back.
    seldom = {} if Can.TELL_FENCED in kind.can else {"heartbeat_ms": 20_000, "session_timeout_ms": 60_000}
    first = stage.member(kind, instance="one", topics=(topic,), **seldom)
    stage.until_shared(topic, 4, first)
    second = stage.member(kind, instance="one", topics=(topic,))
    stage.until(lambda: len(second.owned) == 4, "the newcomer has the partitions")
    if Can.TELL_FENCED in kind.can:
        stage.until(lambda: ErrorCode.FENCED_INSTANCE_ID in first.failures(), "the first is fenced")
    else:
        with pytest.raises(ClientError) as refused:
            first.commit((topic, 0, 1))
        assert refused.value.code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNKNOWN_SERVER_ERROR)
        assert stage.committed(topic) == -1
    stage.fill(topic, 4, each=1)
    stage.until(lambda: sum(map(bool, second.read.values())) == 4, "the newcomer reads on")


@played_by(Can.STATIC, Can.TELL_FENCED, protocol="consumer")
def test_an_instance_id_in_use_is_not_given_to_another(stage: Stage, kind: Kind) -> None:
    topic = stage.topic()
    first = stage.member(kind, instance="one", topics=(topic,))
    stage.until_shared(topic, 4, first)
    second = stage.member(kind, instance="one", topics=(topic,))
    stage.until(lambda: ErrorCode.UNRELEASED_INSTANCE_ID in second.failures(), "the newcomer is refused")
    stage.fill(topic, 4, each=1)
    stage.until(lambda: sum(map(bool, first.read.values())) == 4, "the first reads on")
    assert len(first.owned) == 4
