"""Plays a cell on a stage: brings a group into its state, asks, and says what came of it in plain values.

A stage is whatever answers: a broker behind sockets (wire_stage.py), or a coordinator without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.conformance.asking import eventually
from tests.conformance.groups_cells.asks import (
    CHANGED,
    MISSING_TOPIC,
    OTHER_TOPIC,
    STRANGER,
    TOPIC,
    UNKNOWN_ID,
    USUAL,
    Ask,
    Comes,
    Waits,
    metadata_with,
)
from tests.conformance.groups_cells.txn_asks import NOBODY, End, transactional_id

from lowwater.errors import ErrorCode
from lowwater.groups.consumer_protocol import ConsumerProtocolAssignment, TopicPartition, encode_assignment
from lowwater.wire.messages import (
    ConsumerGroupHeartbeatResponse,
    DescribeTransactionsRequest,
    EndTxnResponse,
    InitProducerIdResponse,
    JoinGroupResponse,
    ListGroupsResponse,
)
from lowwater.wire.schema import declaration_of

WAITS = "waits"
MAIN = "answer"
LABELS = {USUAL: "usual", CHANGED: "changed"}
LABELS |= {metadata_with(*owned): f"owns {owned}" for owned in ((), (0,), (1,), (0, 1))}
LABELS |= {
    encode_assignment(ConsumerProtocolAssignment(assigned_partitions=[]), version): "nothing" for version in range(4)
}
LABELS |= {
    encode_assignment(
        ConsumerProtocolAssignment(assigned_partitions=[TopicPartition(topic=TOPIC, partitions=[*held])]), v
    ): (f"partitions {held}")
    for held in ((0,), (1,), (0, 1), (1, 0))
    for v in range(4)
}
# Words are each broker's own; nobody is told to wait here, or asks for what is allowed.
UNSAID = {"throttle_time_ms", "error_message", "authorized_operations"}


class Stage(Protocol):
    """Requests go out under a name; answers may come at once, later, or not at all."""

    def send(self, name: str, request: Any, version: int) -> None: ...

    def answer(self, name: str, *, expected: bool | None) -> Any | None:
        """What came for the request of this name. `expected`: whether an answer is known to come, None: not known."""

    def topic_id(self, topic: str) -> bytes: ...


@dataclass(frozen=True)
class State:
    """How a group is brought there."""

    name: str
    asks: tuple[Ask, ...] = ()


@dataclass(frozen=True)
class Cell:
    """In a state, `before` is done, then `ask` asked; `then` asks what has become of it."""

    name: str
    state: State
    ask: Ask
    before: tuple[Ask, ...] = ()
    then: tuple[Ask, ...] = ()
    versions: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.state.name}: {self.name}"

    def all_versions(self) -> Sequence[int]:
        if self.ask.v is not None:
            return (self.ask.v,)
        declared = declaration_of(self.ask.request_type)
        return self.versions or range(declared.version_min, declared.version_max + 1)


def version_of(ask: Ask) -> int:
    if isinstance(ask, Comes):
        return 0
    return declaration_of(ask.request_type).version_max if ask.v is None else ask.v


@dataclass
class Play:
    """One run of one cell, and the cast of its asks. `expected` is what the run came to when it was recorded."""

    stage: Stage
    group: str
    expected: dict[str, Any] | None = None
    ids: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=lambda: {STRANGER: STRANGER})
    generations: dict[str, int] = field(default_factory=dict)
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting: dict[str, Ask] = field(default_factory=dict)
    _count: int = 0

    # -- the cast

    def member_id(self, actor: str) -> str:
        return actor if actor in ("", STRANGER) else self.ids.get(actor, "")

    def consumer_id(self, actor: str) -> str:
        return self.ids.get(actor) or f"id-of-{actor}"

    def generation(self, actor: str) -> int:
        return self.generations.get(actor, -1)

    def topic_id(self, topic: str) -> bytes:
        return UNKNOWN_ID if topic == MISSING_TOPIC else self.stage.topic_id(topic)

    def producer(self, actor: str) -> tuple[int, int]:
        return self.producers.get(actor, NOBODY)

    # -- the plot

    def run(self, cell: Cell, version: int) -> dict[str, Any]:
        """What was answered, by what was asked: to it, and to those who were waiting."""
        for ask in (*cell.state.asks, *cell.before):
            self._prepare(ask)
        told = self._asked(cell.ask, version, MAIN)
        for number, ask in enumerate(cell.then, start=1):
            told |= self._asked(ask, version_of(ask), f"then {number}, {describe(ask)}")
        return told

    def _prepare(self, ask: Ask) -> None:
        if isinstance(ask, Comes):
            [name] = [each for each, waiting in self.waiting.items() if waiting.actor == ask.actor]
            self._succeeded(name)
        elif isinstance(ask, Waits):
            assert ask.asked is not None
            name = self._send(ask.asked, version_of(ask.asked))
            assert self._taken(name, expected=False) is None, f"{name} did not have to wait"
        else:
            self._succeeded(self._send(ask, version_of(ask)))

    def _succeeded(self, name: str) -> None:
        response = self._taken(name, expected=True)
        assert response is not None, f"{name} was not answered"
        error = ErrorCode(getattr(response, "error_code", 0))
        assert error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED), f"{name} was answered with {error.name}"

    def _asked(self, ask: Ask, version: int, title: str) -> dict[str, Any]:
        """One request, and what it sets free."""
        earlier = list(self.waiting)
        if isinstance(ask, Comes):
            name = next(each for each, waiting in self.waiting.items() if waiting.actor == ask.actor)
            return {title: self._plain(self._taken(name, expected=True))}
        name = self._send(ask, version)
        told = {title: self._result(name, title)}
        for other in earlier:
            label = f"{title}: {other}"
            answer = self._result(other, label)
            if answer != WAITS:
                told[label] = answer
        return told

    def _result(self, name: str, label: str) -> Any:
        if self.expected is None:
            response = self._taken(name, expected=None)
        else:
            response = self._taken(name, expected=self.expected.get(label, WAITS) != WAITS)
        return WAITS if response is None else self._plain(response)

    def _send(self, ask: Ask, version: int) -> str:
        self._count += 1
        name = f"{describe(ask)} ({self._count})"
        self.stage.send(name, ask.request(self, version), version)
        self.waiting[name] = ask
        return name

    def _taken(self, name: str, *, expected: bool | None) -> Any | None:
        response = self.stage.answer(name, expected=expected)
        if response is not None:
            ask = self.waiting.pop(name)
            self._learn(ask.actor, response)
            if isinstance(ask, End):
                eventually(lambda: self._is_complete(ask))
        return response

    def _is_complete(self, ended: End) -> bool:
        """Whether all that a transaction has written is known to be committed, or not."""
        asked = DescribeTransactionsRequest(transactional_ids=[transactional_id(self, ended.actor)])
        self.stage.send("Is it complete?", asked, 0)
        [described] = self.stage.answer("Is it complete?", expected=True).transaction_states
        return not described.transaction_state.startswith("Prepare")

    def _learn(self, actor: str, response: Any) -> None:
        """Members are known by the ids that they were given."""
        if isinstance(response, JoinGroupResponse):
            if response.error_code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self._name(actor, response.member_id)
            if response.error_code == ErrorCode.NONE:
                self.generations[actor] = response.generation_id
        elif isinstance(response, ConsumerGroupHeartbeatResponse) and response.error_code == ErrorCode.NONE:
            self._name(actor, response.member_id or "")
            self.generations[actor] = response.member_epoch
        elif isinstance(response, InitProducerIdResponse | EndTxnResponse) and response.producer_id >= 0:
            self.producers[actor] = response.producer_id, response.producer_epoch

    def _name(self, actor: str, member_id: str) -> None:
        if member_id and member_id not in self.names:
            self.names[member_id] = actor if actor not in self.names.values() else f"{actor}, new id"
        if member_id:
            self.ids[actor] = member_id

    # -- plain values

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, ListGroupsResponse):
            value.groups = [group for group in value.groups if group.group_id == self.group]
        if isinstance(value, list):
            return sorted((self._plain(each, name) for each in value), key=repr)
        if name == "producer_id":
            return "an id" if value >= 0 else value
        if name.endswith("error_code"):
            return ErrorCode(value).name
        if isinstance(value, bytes):
            return self._topic(value) if name == "topic_id" else LABELS.get(value, value.decode(errors="replace"))
        if isinstance(value, str):
            return "group" if value == self.group else self._member(value, name)
        if hasattr(value, "__slots__") and not isinstance(value, int | bool):
            slots = [each for each in value.__slots__ if each not in UNSAID]
            return {each: self._plain(getattr(value, each), each) for each in slots}
        return value

    def _member(self, value: str, name: str) -> str:
        """Who waits has not been told its id yet."""
        unknown = "someone new" if value and name in ("member_id", "leader") else value
        return self.names.get(value, unknown)

    def _topic(self, topic_id: bytes) -> str:
        known = {self.stage.topic_id(topic): topic for topic in (TOPIC, OTHER_TOPIC)}
        return known.get(topic_id, "unknown" if any(topic_id) else "none")


def describe(ask: Ask) -> str:
    return f"{type(ask).__name__} of {ask.actor}"
