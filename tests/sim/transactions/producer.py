"""A transactional producer: it begins, writes, commits or aborts, and tries again whatever it was not told."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

from tests.sim.groups.client import REQUEST_TIMEOUT_MS, SimClient
from tests.sim.groups.network import Exchange
from tests.sim.transactions import requests
from tests.sim.transactions.requests import INIT_VERSION, NEW, NOBODY, Identity, Path, code_of, identity_in
from tests.sim.transactions.story import Owner, Story

from lowwater.errors import ErrorCode

RETRY_MS = 120
AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.REQUEST_TIMED_OUT,
}
FENCED = {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
ABORTABLE = {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.UNKNOWN_PRODUCER_ID,
}

Step: TypeAlias = "float | tuple[Any, int]"
"""Wait for so long, or send this request."""
Script: TypeAlias = "Generator[Step, Any, ErrorCode]"


class SimProducer(SimClient):
    """One instance of a transactional id. Fenced, it either ends or asks for its next epoch, as libraries do."""

    def __init__(self, name: str, transactional_id: str, path: Path, timeout_ms: int, world: Any) -> None:
        super().__init__(name, requests.group_of(transactional_id), world)
        self.transactional_id = transactional_id
        self.path = path
        self.is_idle = False  # begins no further transaction
        self.commits = 0
        self._timeout_ms = timeout_ms
        self._world = world
        self._identity = NOBODY
        self._sequences: dict[int, int] = {}
        self._script: Script | None = None
        self._exchange: Exchange | None = None

    # -- the process

    def start(self) -> None:
        super().start()
        self._identity = NOBODY
        self._script = self._live()
        self._go_on(None)

    def answered(self, exchange: Exchange) -> None:
        if exchange is self._exchange:
            self._go_on(exchange.response)

    def broken(self, exchange: Exchange) -> None:
        """Whether it arrived is not known."""
        if exchange is self._exchange:
            self._go_on(None)

    def _go_on(self, result: Any) -> None:
        assert self._script is not None
        try:
            step = self._script.send(result)
        except StopIteration:
            self.die()
            return
        if isinstance(step, tuple):
            self._exchange = self.post(*step)
        else:
            self._exchange = None
            self.after(step, lambda: self._go_on(None))

    def post(self, request: Any, version: int, timeout_ms: float = REQUEST_TIMEOUT_MS) -> Exchange:
        exchange = super().post(request, version, timeout_ms)
        self._world.judge.sent(exchange, self._owner)
        self._world.library.send(request, self._owner)
        return exchange

    @property
    def _owner(self) -> Owner:
        return self.name, self._life

    # -- what it does

    def _live(self) -> Script:
        while True:
            code = yield from self._begin()
            while code is ErrorCode.NONE:
                yield self.shore.draw.random() * 800
                while self.is_idle:
                    yield 500.0
                code = yield from self._transaction()
            if code in FENCED and self.shore.draw.random() < 0.5:
                return code
            if code in FENCED and self.shore.draw.random() < 0.3:
                self._identity = NOBODY
            yield RETRY_MS * self.shore.draw.random()

    def _begin(self) -> Script:
        """With the identity it had, if it had one, and if that is of no use without."""
        request = requests.init(self.transactional_id, self._timeout_ms, self._identity)
        response = yield from self._asked(request, INIT_VERSION)
        code = code_of(response)
        if code is ErrorCode.NONE:
            self._take(identity_in(response))
        else:
            self._identity = NOBODY
        return code

    def _take(self, identity: Identity) -> None:
        if identity != self._identity:
            self._sequences.clear()
        self._identity = identity

    def _asked(self, request: Any, version: int) -> Generator[Step, Any, Any]:
        """Until there is an answer that is not to try again."""
        while True:
            response = yield request, version
            if response is None:
                continue
            code = code_of(response)
            if code is ErrorCode.NONE or code in FENCED or code in ABORTABLE:
                return response
            if code not in AGAIN:
                self._world.unknown_code(request, code)
                return response
            yield RETRY_MS * (0.5 + self.shore.draw.random())

    def _transaction(self) -> Script:
        story = self._world.library.begin(self.transactional_id, self._owner)
        code = yield from self._write(story)
        if code in FENCED:
            return code
        commit = code is ErrorCode.NONE and self.shore.draw.random() < 0.75
        if self.shore.network.is_faulty and self.shore.draw.random() < 0.05:
            yield self._timeout_ms * self.shore.draw.random() * 1.5
        return (yield from self._end(story, commit))

    def _write(self, story: Story) -> Script:
        indexes = self.shore.draw.sample(range(self._world.partitions), self.shore.draw.randint(1, 2))
        if self.path is not NEW:
            request = requests.add_partitions(self.transactional_id, self._identity, indexes)
            response = yield from self._asked(request, requests.ADD_VERSION)
            if (code := code_of(response)) is not ErrorCode.NONE:
                return code
        for place in range(self.shore.draw.randint(1, 3)):
            code = yield from self._produce(story, self.shore.draw.choice(indexes), place)
            if code is not ErrorCode.NONE:
                return code
        if self.shore.draw.random() < 0.4:
            return (yield from self._commit_offsets(story))
        return ErrorCode.NONE

    def _produce(self, story: Story, index: int, place: int) -> Script:
        values = [f"{story.value(place)}:{index}:{n}" for n in range(self.shore.draw.randint(1, 2))]
        sequence = self._sequences.get(index, 0)
        request = requests.produce(self.transactional_id, self._identity, index, sequence, values)
        response = yield from self._asked(request, self.path.produce)
        code = code_of(response)
        if code is ErrorCode.NONE:
            self._sequences[index] = sequence + len(values)
            story.acked.setdefault(index, []).extend(values)
        return code

    def _commit_offsets(self, story: Story) -> Script:
        if self.path is not NEW:
            request = requests.add_offsets(self.transactional_id, self._identity)
            response = yield from self._asked(request, requests.ADD_OFFSETS_VERSION)
            if (code := code_of(response)) is not ErrorCode.NONE:
                return code
        offsets = requests.commit_offsets(self.transactional_id, self._identity, story.number)
        response = yield from self._asked(offsets, self.path.commit_offsets)
        code = code_of(response)
        if code is ErrorCode.NONE:
            story.offset = story.number
        return code

    def _end(self, story: Story, commit: bool) -> Script:
        if commit:
            story.asked_commit_ms = self.now_ms
        else:
            story.asked_abort = True
        request = requests.end(self.transactional_id, self._identity, commit)
        response = yield from self._asked(request, self.path.end)
        code = code_of(response)
        if code is ErrorCode.NONE:
            story.is_committed = commit
            self.commits += commit
            if self.path is NEW:
                self._take(identity_in(response))
        return code
