"""Clients that join, sync, fall silent, lose answers and ask twice, over a broker that stops at any moment."""

from __future__ import annotations

import os
from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.groups.classic_world import REBALANCE_MS, SESSION_MS, World

from lowwater.errors import ErrorCode
from lowwater.groups.classic_members import Protocols
from lowwater.groups.classic_rebalance import COMPLETING, EMPTY, PREPARING, STABLE
from lowwater.groups.timers import NEVER

HOURS_MS = 3 * 3_600_000
RANGE = (("range", b"r"),)
BOTH = (("sticky", b"s"), ("range", b"r"))
CHANGED = (("range", b"changed"),)
BEGIN_AGAIN = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.FENCED_INSTANCE_ID}


class Client:
    """Does what a consumer does, one request at a time; `asked` is the one it waits for."""

    def __init__(self, world: World, instance_id: str | None, asks: bool, protocols: Protocols) -> None:
        self.world = world
        self.instance_id = instance_id
        self.asks = asks
        self.protocols = protocols
        self.member_id = ""
        self.generation = -1
        self.wants = "join"
        self.asked: tuple[str, int] | None = None
        self.leads: list[str] | None = None
        self.assignment: bytes | None = None

    def step(self) -> None:
        """Take an answer if there is one, or ask."""
        if self.asked is None:
            self.ask()
        elif self.asked[1] in self.world.answers:
            kind, token = self.asked
            self.asked = None
            self.hear(kind, token)

    def ask(self) -> None:
        """Also while it waits: the answer to what it asked before is lost to it."""
        world = self.world
        if self.wants == "join":
            token = world.join(self.member_id, self.instance_id, self.protocols, asks=self.asks)
        elif self.wants == "sync":
            assignments = {to: f"{self.generation}:{to}".encode() for to in self.leads or ()}
            token = world.sync(self.member_id, assignments, self.instance_id, self.generation)
        else:
            self.hear_error(world.heartbeat(self.member_id, self.instance_id, self.generation))
            return
        self.asked = (self.wants, token)

    def hear(self, kind: str, token: int) -> None:
        error, answer = self.world.error(token), self.world.answers[token]
        if error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif error != ErrorCode.NONE:
            self.hear_error(error)
        elif kind == "join":
            self.member_id, self.generation, self.wants = answer.member_id, answer.generation_id, "sync"
            leads = answer.leader == answer.member_id and not answer.skip_assignment
            self.leads = [member.member_id for member in answer.members] if leads else None
        else:
            self.assignment, self.wants = answer.assignment, "heartbeat"

    def hear_error(self, error: ErrorCode) -> None:
        if error in BEGIN_AGAIN:
            self.member_id = ""
        if error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            self.protocols = BOTH
        if error != ErrorCode.NONE:
            self.wants = "join"


class ClassicGroupMachine(RuleBasedStateMachine):
    clients_max = 5

    @initialize(delay_ms=st.sampled_from([0, 3000]), size=st.sampled_from([3, 1000]))
    def start(self, delay_ms: int, size: int) -> None:
        self.world = World(initial_rebalance_delay_ms=delay_ms, group_size_max=size)
        self.clients: list[Client] = []
        self.lost: set[int] = set()

    def client(self, index: int) -> Client | None:
        return self.clients[index % len(self.clients)] if self.clients else None

    @rule(
        instance=st.sampled_from([None, None, "a", "b"]), asks=st.booleans(), protocols=st.sampled_from([RANGE, BOTH])
    )
    def a_client_starts(self, instance, asks, protocols):
        if len(self.clients) < self.clients_max:
            self.clients.append(Client(self.world, instance, asks, protocols))

    @rule(index=st.integers(0, 4), steps=st.integers(1, 4))
    def a_client_goes_on(self, index, steps):
        for _ in range(steps):
            if client := self.client(index):
                client.step()

    @rule(steps=st.integers(1, 4))
    def all_clients_go_on(self, steps):
        for _ in range(steps):
            for client in self.clients:
                client.step()

    @rule(index=st.integers(0, 4))
    def a_client_asks_again(self, index):
        if client := self.client(index):
            client.ask()

    @rule(index=st.integers(0, 4))
    def a_client_joins_again(self, index):
        if client := self.client(index):
            client.wants = "join"
            client.ask()

    @rule(index=st.integers(0, 4))
    def a_client_changes_what_it_reads(self, index):
        if client := self.client(index):
            client.protocols, client.wants = CHANGED, "join"

    @rule(index=st.integers(0, 4))
    def a_client_is_killed(self, index):
        if client := self.client(index):
            self.clients.remove(client)

    @rule(index=st.integers(0, 4))
    def a_client_restarts(self, index):
        if client := self.client(index):
            self.clients.remove(client)
            self.clients.append(Client(self.world, client.instance_id, client.asks, client.protocols))

    @rule(index=st.integers(0, 4))
    def a_client_leaves(self, index):
        if client := self.client(index):
            self.clients.remove(client)
            self.world.leave((client.member_id, client.instance_id))

    @rule(index=st.integers(0, 4))
    def a_client_commits(self, index):
        if client := self.client(index):
            self.world.commit(client.member_id, client.generation, client.instance_id)

    @rule(ms=st.sampled_from([1, 1000, 3000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS, 300_000]))
    def time_goes_by(self, ms):
        self.world.wait(ms)

    @rule(seconds=st.integers(1, 70))
    def time_goes_by_while_clients_are_alive(self, seconds):
        for _ in range(seconds):
            for client in self.clients:
                client.step()
            self.world.wait(1000)

    @rule()
    def the_broker_stops_and_starts(self):
        self.lost |= self.waiting()
        self.world.crash()
        for client in self.clients:
            if client.asked and self.world.waits(client.asked[1]):
                client.asked = None

    def waiting(self) -> set[int]:
        members = self.world.group.roster.members.values()
        return {token for member in members for token in (member.join_token, member.sync_token) if token is not None}

    @invariant()
    def who_is_not_answered_waits_in_the_group(self):
        unanswered = set(range(1, self.world.tokens + 1)) - self.world.answers.keys() - self.lost
        assert unanswered == self.waiting()

    @invariant()
    def counts_are_right(self):
        roster = self.world.group.roster
        members = roster.members.values()
        assert roster.joined == sum(member.join_token is not None for member in members)
        assert roster.unsynced <= roster.members.keys()
        assert roster.instances == {member.instance_id: member for member in members if member.instance_id is not None}
        assert self.world.metrics.total_members == len(roster.members)
        names = {name for member in members for name, _ in member.protocols}
        assert roster._supporters == {name: sum(name in dict(member.protocols) for member in members) for name in names}

    @invariant()
    def whoever_is_waited_for_has_a_deadline(self):
        group = self.world.group
        for member in group.roster.members.values():
            waits = member.sync_token is not None or member.join_token is not None
            assert (waits and not member.is_new) or member.queued_ms <= member.deadline_ms < NEVER
        must_end = group.state in (PREPARING, COMPLETING) or (group.state == STABLE and group.roster.unsynced)
        assert not must_end or group._phase.deadline_ms < NEVER
        assert (group.state == EMPTY) == (not group.roster.members) or group.state == PREPARING

    @invariant()
    def a_generation_is_begun_once_and_counted_by_one(self):
        generations = [value.generation for value in self.world.values]
        assert all(after - before in (0, 1) for before, after in pairwise([0, *generations]))
        for before, after in pairwise(self.world.values):
            if before.generation == after.generation:
                assert before.protocol == after.protocol
                assert len(before.members) == len(after.members)

    @invariant()
    def nobody_hears_of_a_generation_that_is_not_logged(self):
        """Also that it is told the same leader as all others, who may have come back under a new id."""
        leaders: dict[int, set[str | None]] = {}
        for value in self.world.values:
            leaders.setdefault(value.generation, set()).add(value.leader)
        for answer in self.world.answers.values():
            generation = getattr(answer, "generation_id", -1)
            assert generation < 0 or answer.leader in leaders[generation]

    @invariant()
    def members_of_a_stable_generation_have_what_the_leader_gave_them(self):
        group = self.world.group
        if group.state != STABLE:
            return
        given = {bytes(member.assignment) for value in self.world.values for member in value.members}
        for member in group.roster.members.values():
            assert not member.assignment or member.assignment.startswith(f"{group.generation}:".encode())
            assert member.assignment in given
        held = [member.assignment for member in group.roster.members.values() if member.assignment]
        assert len(held) == len(set(held)), "an assignment has two owners"

    def teardown(self) -> None:
        """With clients that live on all become members of one Stable generation; without them the group empties."""
        if not hasattr(self, "world"):
            return
        self.live_on()
        self.world.wait(HOURS_MS)
        assert self.world.state == EMPTY
        assert not self.waiting()
        assert not self.world.group.roster.handed_out
        assert self.world.timers.next_deadline_ms is None

    def live_on(self) -> None:
        """Clients of one instance id would fence each other forever, and a full group turns some away."""
        by_instance = {client.instance_id or str(index): client for index, client in enumerate(self.clients)}
        alive = list(by_instance.values())[: self.world.config.group_size_max]
        for _ in range(900):
            for client in alive:
                client.step()
            self.world.wait(1000)
        if alive:
            assert self.world.state == STABLE
            assert {client.member_id for client in alive} == self.world.group.roster.members.keys()
            assert {client.generation for client in alive} == {self.world.generation}
            assert {client.wants for client in alive} == {"heartbeat"}


ClassicGroupMachine.TestCase.settings = settings(
    max_examples=int(os.environ.get("GROUP_EXAMPLES", "60")),
    stateful_step_count=30,
    deadline=None,
    derandomize="GROUP_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
TestClassicGroup = ClassicGroupMachine.TestCase
