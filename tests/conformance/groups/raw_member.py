"""A member that does exactly what a test says: it joins and does not sync, it is late, it goes silent."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

from tests.conformance.raw import Wire

from lowwater.errors import ErrorCode
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN, SYNC = 11, 14
JOIN_VERSION, SYNC_VERSION = 9, 5


class RawMember:
    """One connection, one member of a classic group; `protocol` is the name of the assignor that it claims to know."""

    def __init__(
        self,
        address: tuple[str, int],
        group: str,
        topics: Iterable[str],
        *,
        protocol: str = "range",
        session_timeout_ms: int = 15_000,
        rebalance_timeout_ms: int = 30_000,
        instance: str | None = None,
    ) -> None:
        self.wire = Wire(address)
        self.group = group
        self.protocols = [JoinGroupRequestProtocol(name=protocol, metadata=subscription(topics))]
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.joined: Any = None
        self._waiting = 0

    def begin_join(self) -> None:
        """Get a member id if there is none yet, send Join, and do not wait for its answer."""
        if not self.member_id and self.instance is None:
            answer = self.wire.ask(self._join_request(), JOIN_VERSION)
            assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
            self.member_id = answer.member_id
        self._waiting = self.wire.send(self._join_request(), JOIN_VERSION)

    def end_join(self) -> Any:
        """Wait for the answer of the Join that was begun."""
        self.joined = self.wire.receive(JOIN, JOIN_VERSION, self._waiting)
        if self.joined.error_code == 0:
            self.member_id, self.generation = self.joined.member_id, self.joined.generation_id
        return self.joined

    def join(self) -> Any:
        self.begin_join()
        return self.end_join()

    def try_join(self) -> Any:
        """Join however it ends; an id that is handed out is kept for the next try."""
        self._waiting = self.wire.send(self._join_request(), JOIN_VERSION)
        answer = self.end_join()
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._waiting = self.wire.send(self._join_request(), JOIN_VERSION)
            answer = self.end_join()
        return answer

    @property
    def leads(self) -> bool:
        return bool(self.joined.leader == self.member_id)

    def begin_sync(self, assignments: Mapping[str, Mapping[str, list[int]]] | None = None) -> None:
        wanted = [
            SyncGroupRequestAssignment(member_id=member, assignment=assignment(places))
            for member, places in (assignments or {}).items()
        ]
        self._waiting = self.wire.send(self._sync_request(wanted), SYNC_VERSION)

    def end_sync(self) -> Any:
        return self.wire.receive(SYNC, SYNC_VERSION, self._waiting)

    def sync(self, assignments: Mapping[str, Mapping[str, list[int]]] | None = None) -> Any:
        self.begin_sync(assignments)
        return self.end_sync()

    def heartbeat(self) -> int:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return int(self.wire.ask(request).error_code)

    def leave(self) -> None:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance, reason="the test says so")
        self.wire.ask(LeaveGroupRequest(group_id=self.group, members=[identity]))

    def close(self) -> None:
        """Drop the connection; the group is told nothing."""
        self.wire.socket.close()

    def _join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=self.protocols,
            reason="the test says so",
        )

    def _sync_request(self, assignments: list[SyncGroupRequestAssignment]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name=self.protocols[0].name,
            assignments=assignments,
        )


def subscription(topics: Iterable[str], owned: Mapping[str, list[int]] | None = None) -> bytes:
    """ConsumerProtocolSubscription, version 1."""
    names = list(topics)
    listed = b"".join(_string(name) for name in names)
    return struct.pack(">hi", 1, len(names)) + listed + struct.pack(">i", -1) + _places(owned or {})


def assignment(places: Mapping[str, list[int]]) -> bytes:
    """ConsumerProtocolAssignment, version 1."""
    return struct.pack(">h", 1) + _places(places) + struct.pack(">i", -1)


def _places(places: Mapping[str, list[int]]) -> bytes:
    parts = [struct.pack(">i", len(places))]
    for topic, partitions in places.items():
        parts.append(_string(topic) + struct.pack(f">i{len(partitions)}i", len(partitions), *partitions))
    return b"".join(parts)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
