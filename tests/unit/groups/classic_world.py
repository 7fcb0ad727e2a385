"""A classic group on a clock of its own, with its log and its clients' answers."""

from __future__ import annotations

from typing import Any

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.classic import ClassicGroup, check_join
from lowwater.groups.commands import Join
from lowwater.groups.config import GroupConfig
from lowwater.groups.metrics import GroupMetrics
from lowwater.groups.record_schemas import GroupMetadataValue
from lowwater.groups.records import decode
from lowwater.groups.timers import Timers
from lowwater.outcome import Now, Outcome, StateRecord
from lowwater.wire.messages.heartbeat import HeartbeatRequest
from lowwater.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
WALL_MS = 1_700_000_000_000
RANGE = (("range", b"r"),)


class CountedIds:
    """Ids that tell their order."""

    def __init__(self) -> None:
        self.count = 0

    def uuid(self) -> bytes:
        self.count += 1
        return self.count.to_bytes(16, "big")

    def boot_id(self) -> str:
        return "boot"


class World:
    """`answers` has what each token was told: a response, or the code of a plain refusal."""

    def __init__(self, **config: int) -> None:
        self.config = GroupConfig(**{"initial_rebalance_delay_ms": DELAY_MS, **config})
        self.ids = CountedIds()
        self.now_ms = 0.0
        self.wall_ms = WALL_MS
        self.log: list[StateRecord] = []
        self.values: list[GroupMetadataValue] = []
        self.answers: dict[int, Any] = {}
        self.tokens = 0
        self._start()

    def _start(self) -> None:
        self.timers = Timers()
        self.metrics = GroupMetrics()
        self.group = ClassicGroup("g", self.config, self.ids, self.timers, self.metrics)

    @property
    def now(self) -> Now:
        return Now(self.wall_ms + int(self.now_ms), self.now_ms)

    @property
    def state(self) -> str:
        return self.group.state

    @property
    def generation(self) -> int:
        return self.group.generation

    # What clients send

    def join(
        self,
        member_id: str = "",
        instance_id: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        *,
        asks: bool = False,
        skips: bool = True,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "consumer",
        reason: str | None = None,
    ) -> int:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
            reason=reason,
        )
        check_join(request, self.config)
        return self._ask(self.group.join, Join(request, "client", "host", asks, skips))

    def sync(
        self,
        member_id: str,
        assignments: dict[str, bytes] | None = None,
        instance_id: str | None = None,
        generation: int | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> int:
        return self._ask(
            self.group.sync,
            SyncGroupRequest(
                group_id="g",
                generation_id=self.generation if generation is None else generation,
                member_id=member_id,
                group_instance_id=instance_id,
                protocol_type=protocol_type,
                protocol_name=protocol,
                assignments=[
                    SyncGroupRequestAssignment(member_id=to, assignment=assignment)
                    for to, assignment in (assignments or {}).items()
                ],
            ),
        )

    def heartbeat(self, member_id: str, instance_id: str | None = None, generation: int | None = None) -> ErrorCode:
        token = self._ask(
            self.group.heartbeat,
            HeartbeatRequest(
                group_id="g",
                generation_id=self.generation if generation is None else generation,
                member_id=member_id,
                group_instance_id=instance_id,
            ),
        )
        return self.error(token)

    def leave(self, *members: str | tuple[str, str | None], reason: str | None = None) -> list[ErrorCode]:
        """By member id, or by (member id, instance id)."""
        pairs = [(member, None) if isinstance(member, str) else member for member in members]
        token = self._ask(
            self.group.leave,
            LeaveGroupRequest(
                group_id="g",
                members=[MemberIdentity(member_id=id, group_instance_id=of, reason=reason) for id, of in pairs],
            ),
        )
        if isinstance(self.answers[token], ErrorCode):
            return [self.answers[token]] * len(pairs)
        return [ErrorCode(member.error_code) for member in self.answers[token].members]

    def commit(self, member_id: str = "", generation: int = -1, instance_id: str | None = None) -> ErrorCode:
        return self._checked(self.group.check_commit, member_id, instance_id, generation, self.now)

    def txn_commit(self, member_id: str = "", generation: int = -1, instance_id: str | None = None) -> ErrorCode:
        return self._checked(self.group.check_txn_commit, member_id, instance_id, generation, self.now)

    def delete(self) -> ErrorCode:
        return self._checked(self.group.check_delete)

    def _checked(self, check: Any, *arguments: Any) -> ErrorCode:
        try:
            check(*arguments)
        except ApiError as refusal:
            return refusal.code
        return ErrorCode.NONE

    # What the driver does

    def _ask(self, decide: Any, request: Any) -> int:
        self.tokens += 1
        token, out = self.tokens, Outcome()
        try:
            decide(request, token, self.now, out)
        except ApiError as refusal:
            assert not out.records
            out.reply(token, refusal.code)
        self._do(out)
        return token

    def _do(self, out: Outcome) -> None:
        for record in out.records:
            _, value = decode(record)
            self.log.append(record)
            self.values.append(value)
            self.group.replay_metadata(value)
        for token, answer in out.replies:
            assert token not in self.answers, "answered twice"
            self.answers[token] = answer

    def wait(self, ms: float) -> None:
        """Time goes by; what becomes due on the way is done at its time."""
        until_ms = self.now_ms + ms
        while (next_ms := self.timers.next_deadline_ms) is not None and next_ms <= until_ms:
            self.now_ms = max(self.now_ms, next_ms)
            self._tick()
        self.now_ms = until_ms

    def _tick(self) -> None:
        out = Outcome()
        while not out.records and (timer := self.timers.take_due(self.now_ms)) is not None:
            timer.group.due(timer, self.now, out)
        self._do(out)

    def wait_alive(self, ms: float, *member_ids: str) -> None:
        """The same while these members send heartbeats."""
        for _ in range(int(ms // 1000)):
            for member_id in member_ids:
                self.heartbeat(member_id)
            self.wait(1000)
        self.wait(ms % 1000)

    def crash(self) -> None:
        """Only the log is left. Whoever waited hears nothing."""
        self._start()
        for record in self.log:
            self.group.replay_metadata(decode(record)[1])
        out = Outcome()
        self.group.loaded(self.now, out)
        self._do(out)

    # What clients hear

    def waits(self, token: int) -> bool:
        return token not in self.answers

    def error(self, token: int) -> ErrorCode:
        answer = self.answers[token]
        return ErrorCode(answer if isinstance(answer, ErrorCode) else answer.error_code)

    def member_id(self, token: int) -> str:
        return self.answers[token].member_id

    # Groups in a given state

    def handed_out(self, **join: Any) -> str:
        return self.member_id(self.join(asks=True, **join))

    def completing(self, *joins: dict[str, Any]) -> list[str]:
        """Members of a new generation, the leader first; none has synced."""
        tokens = [self.join(**join) for join in joins or ({}, {})]
        while self.waits(tokens[0]):
            self.wait(self.timers.next_deadline_ms - self.now_ms)
        assert self.state == "CompletingRebalance"
        return [self.member_id(token) for token in tokens]

    def stable(self, *joins: dict[str, Any]) -> list[str]:
        """Members of a Stable generation, the leader first. Each is assigned its own id."""
        members = self.completing(*joins)
        for member_id in [*members[1:], members[0]]:
            instance_id = self.group.roster.members[member_id].instance_id
            self.sync(member_id, {member: member.encode() for member in members}, instance_id)
        assert self.state == "Stable"
        return members

    def preparing(self, *joins: dict[str, Any]) -> list[str]:
        """Members of a generation that ends: the leader first, who alone has joined again."""
        members = self.stable(*joins)
        self.join(members[0], self.group.roster.members[members[0]].instance_id)
        assert self.state == "PreparingRebalance"
        return members
