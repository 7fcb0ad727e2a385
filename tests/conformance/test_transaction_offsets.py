"""Offsets in transactions: they are committed with the records, or not at all."""

from __future__ import annotations

import pytest
from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.face import Can, MemberOf
from tests.conformance.transactions.kinds import by_each
from tests.conformance.transactions.scene import Scene

from lowwater.errors import ErrorCode

# Libraries make an error of their own of these, and tell the broker's in its words.
TOLD_AS = {
    ErrorCode.UNKNOWN_MEMBER_ID: ("UnknownMemberIdError", "not aware of this member", "does not know this member"),
    ErrorCode.ILLEGAL_GENERATION: ("IllegalGenerationError", "generation id is not valid", "another generation"),
}


@by_each()
def test_offsets_are_committed_with_their_transaction(scene: Scene) -> None:
    source, sink = scene.topic(partitions=1), scene.topic(partitions=1)
    scene.fill(source, 1, each=10)
    producer = scene.producer()
    producer.begin()
    producer.send(sink, b"four read")
    producer.send_offsets(MemberOf(scene.group), {(source, 0): 4})
    assert scene.committed(source) == -1
    assert scene.stable_offset((source, 0)) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    producer.commit()
    scene.until_ended((sink, 0))
    scene.until_committed(source, 0, 4)
    assert scene.view(sink) == [b"four read"]


@by_each()
def test_offsets_of_an_aborted_transaction_are_dropped(scene: Scene) -> None:
    source = scene.topic(partitions=2)
    scene.fill(source, 2, each=10)
    producer = scene.producer()
    producer.begin()
    producer.send_offsets(MemberOf(scene.group), {(source, 0): 3, (source, 1): 5})
    producer.commit()
    scene.until_committed(source, 1, 5)
    producer.begin()
    producer.send_offsets(MemberOf(scene.group), {(source, 0): 7})
    assert scene.committed(source, 0) == 3
    producer.abort()
    scene.until_transaction("CompleteAbort")
    assert scene.stable_offset((source, 0)) == 3
    assert scene.stable_offset((source, 1)) == 5


@by_each(Can.NAME_ITS_MEMBER)
def test_only_a_member_of_the_generation_may_commit_for_its_group(scene: Scene) -> None:
    source = scene.topic(partitions=1)
    member = scene.raw_member([source])
    member.join()
    member.sync({member.member_id: {source: [0]}})
    producer = scene.producer()
    producer.begin()
    producer.send_offsets(MemberOf(scene.group, member.member_id, member.generation), {(source, 0): 2})
    producer.commit()
    scene.until_committed(source, 0, 2)
    strangers = {
        ErrorCode.UNKNOWN_MEMBER_ID: MemberOf(scene.group, "nobody", member.generation),
        ErrorCode.ILLEGAL_GENERATION: MemberOf(scene.group, member.member_id, member.generation + 1),
    }
    for code, stranger in strangers.items():
        producer.begin()
        with pytest.raises(ClientError) as refusal:
            producer.send_offsets(stranger, {(source, 0): 9})
        assert any(words in str(refusal.value) for words in TOLD_AS[code]), refusal.value
        producer.abort()
    assert scene.stable_offset((source, 0)) == 2
