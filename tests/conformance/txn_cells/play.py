"""Plays a cell: brings a transactional id into its state, asks, and says what came of it in plain values."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from tests.conformance.asking import UNKNOWN_ID, now_ms, topic_id
from tests.conformance.raw import Wire
from tests.conformance.txn_cells.asks import MISSING_TOPIC, Ask, Describe, Until, Write

from lowwater.errors import ErrorCode
from lowwater.wire.control import read_end_marker
from lowwater.wire.messages import EndTxnResponse, InitProducerIdResponse, ListTransactionsResponse
from lowwater.wire.records import BatchHeader, read_records
from lowwater.wire.schema import declaration_of

MAIN = "answer"
PATIENCE_S = 20
NOBODY = 987_654_321_987
ENDING = ("PrepareCommit", "PrepareAbort")
LATER = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
# Words and addresses are each broker's own, as are leader epochs; nobody is told to wait here.
UNSAID = {
    "throttle_time_ms",
    "error_message",
    "host",
    "port",
    "node_id",
    "node_endpoints",
    "topic_id",
    "leader_epoch",
    "current_leader",
    "diverging_epoch",
    "snapshot_id",
    "preferred_read_replica",
    "session_id",
    "record_errors",
    "log_append_time_ms",
    "old_style_offsets",
}
TIMES = {"transaction_start_time_ms", "last_timestamp", "timestamp"}


class TooLateError(AssertionError):
    """On the way to a state in which a transaction has timed out it did so too early."""


@dataclass(frozen=True)
class Stored:
    """A record of `__transaction_state` with which a broker starts. `form`: the level of the feature that wrote it."""

    status: int
    epoch: int
    _: KW_ONLY
    in_partition: bool = False
    client_version: int = 0
    has_previous: bool = False
    has_next: bool = False
    form: int = 2


@dataclass(frozen=True)
class State:
    """How a transactional id is brought there: by asking, or by what is stored of it."""

    name: str
    asks: tuple[Ask, ...] = ()
    stored: Stored | None = None


@dataclass(frozen=True)
class Cell:
    """In a state, `ask` is asked; `then` asks what has become of it. `level` is that of transaction.version."""

    name: str
    state: State
    ask: Ask
    then: tuple[Ask, ...] = ()
    versions: tuple[int, ...] = ()
    level: int = 2

    @property
    def title(self) -> str:
        level = "" if self.level == 2 else f"transaction.version {self.level}, "
        return f"{level}{self.state.name}: {self.name}"

    def all_versions(self) -> Sequence[int]:
        if self.ask.v is not None:
            return (self.ask.v,)
        declared = declaration_of(self.ask.request_type)
        return self.versions or range(declared.version_min, declared.version_max + 1)

    @property
    def looks_at_logs(self) -> bool:
        """Then it has to be alone in them."""
        return any(ask.touches_logs for ask in (self.ask, *self.then))


def version_of(ask: Ask) -> int:
    return declaration_of(ask.request_type).version_max if ask.v is None else ask.v


def error_codes(value: Any, name: str = "") -> Iterator[ErrorCode]:
    """Every error in an answer."""
    if isinstance(value, list):
        for each in value:
            yield from error_codes(each, name)
    elif name.endswith("error_code"):
        yield ErrorCode(value)
    elif hasattr(value, "__slots__") and not isinstance(value, int):
        for each in value.__slots__:
            yield from error_codes(getattr(value, each), each)


@dataclass
class Play:
    """One run of one cell, and the cast of its asks."""

    wire: Wire
    transactional_id: str
    topic: str
    group: str
    coordinator_epoch: int
    producers: dict[str, tuple[int, int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    sequences: dict[tuple[int, int, int], int] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)

    # -- the cast

    def producer_id(self, actor: str) -> int:
        return self.producers.get(actor, (NOBODY, 0))[0]

    def epoch(self, actor: str) -> int:
        return self.producers.get(actor, (NOBODY, 0))[1]

    def next_sequence(self, producer_id: int, epoch: int, partition: int) -> int:
        return self.sequences.get((producer_id, epoch, partition), 0)

    def topic_id(self, topic: str) -> bytes:
        if topic == MISSING_TOPIC:
            return UNKNOWN_ID
        if topic not in self.topic_ids:
            self.topic_ids[topic] = topic_id(self.wire, topic)
        return self.topic_ids[topic]

    # -- the plot

    def run(self, cell: Cell, version: int) -> dict[str, Any]:
        """What was answered, by what was asked."""
        self.prepare(cell.state.asks)
        told = {MAIN: self._plain(self._asked(cell.ask, version))}
        for number, ask in enumerate(cell.then, start=1):
            told[f"then {number}, {describe(ask)}"] = self._plain(self._asked(ask, version_of(ask)))
        return told

    def prepare(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            try:
                self._prepare(ask)
            except AssertionError as error:
                if any(isinstance(each, Until) for each in asks):
                    raise TooLateError(str(error)) from error
                raise

    def _prepare(self, ask: Ask) -> None:
        """On the way to a state all is asked until it succeeds, and is over."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            response = self._asked(ask, version_of(ask))
            errors = {code for code in error_codes(response) if code != ErrorCode.NONE}
            if not errors:
                break
            assert errors <= set(LATER), f"{describe(ask)} was answered with {errors}"
            assert time.monotonic() < deadline, f"{describe(ask)} still is {errors}"
        self._asked(Describe(ask.actor, id=ask.id), 0)

    def _asked(self, ask: Ask, version: int) -> Any:
        _wait_for_the_next_millisecond()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            response = self.wire.ask(ask.request(self, version), version)
            if not isinstance(ask, Describe) or self._is_over(ask, response):
                break
            assert time.monotonic() < deadline, f"{describe(ask)} does not come to an end"
        self._learn(ask, response)
        return response

    def _is_over(self, ask: Describe, response: Any) -> bool:
        state = response.transaction_states[0].transaction_state
        return state == ask.state if isinstance(ask, Until) else state not in ENDING

    def _learn(self, ask: Ask, response: Any) -> None:
        if any(code != ErrorCode.NONE for code in error_codes(response)):
            return
        if isinstance(response, InitProducerIdResponse | EndTxnResponse) and response.producer_id >= 0:
            self.producers[ask.actor] = response.producer_id, response.producer_epoch
            self.names.setdefault(response.producer_id, f"producer {len(self.names) + 1}")
        if isinstance(ask, Write):
            place = (*ask.producer(self), ask.partition)
            self.sequences[place] = self.sequences.get(place, 0) + 1

    # -- plain values

    def _plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, ListTransactionsResponse):
            mine = [each for each in value.transaction_states if each.transactional_id == self.transactional_id]
            value.transaction_states = mine
        if name == "records":
            return self._records(value)
        if isinstance(value, list):
            return sorted((self._plain(each, name) for each in value), key=repr)
        if name.endswith("error_code"):
            return ErrorCode(value).name
        if name == "producer_id":
            return self.names.get(value, value if value in (-1, 0) else "another")
        if name == "coordinator_epoch" and value >= 0:
            return value - self.coordinator_epoch
        if name in TIMES and value > 0:
            return "a time"
        if isinstance(value, str):
            value = value.replace(self.transactional_id, "id") if value.startswith(self.transactional_id) else value
            return {self.topic: "topic", self.group: "group"}.get(value, value)
        if hasattr(value, "__slots__") and not isinstance(value, int | bool):
            slots = [each for each in value.__slots__ if each not in UNSAID]
            return {each: self._plain(getattr(value, each), each) for each in slots}
        return value

    def _records(self, data: Any) -> list[str]:
        """One line a record, in the order of the log."""
        view, lines = memoryview(data or b""), []
        while view:
            header = BatchHeader.parse(view)
            marker = read_end_marker(view, header)
            who = f"{self.names.get(header.producer_id, header.producer_id)} in epoch {header.producer_epoch}"
            for record in read_records(view):
                what = ("commit" if marker.commit else "abort") if marker else (record.value or b"").decode()
                lines.append(f"{record.offset}: {what}, {who}")
            view = view[header.size :]
        return lines


def describe(ask: Ask) -> str:
    return f"{type(ask).__name__} of {ask.actor}"


def _wait_for_the_next_millisecond() -> None:
    """So that no two things that are written have the same time, and the latest is known."""
    now = now_ms()
    while now_ms() <= now:
        pass
