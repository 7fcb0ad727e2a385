"""What one transaction test plays on: topics, a group and transactional ids of its own, gone when it ends."""

from __future__ import annotations

import contextlib
import itertools

from tests.conformance.asking import batch_of, look_up, produce
from tests.conformance.groups.stage import SharedHosts, Stage, eventually
from tests.conformance.raw import Wire
from tests.conformance.transactions.face import TRANSACTION_TIMEOUT_MS, Place, Transactor
from tests.conformance.transactions.kinds import Kind
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages.describe_transactions import DescribeTransactionsRequest
from lowwater.wire.messages.find_coordinator import FindCoordinatorRequest
from lowwater.wire.messages.init_producer_id import InitProducerIdRequest
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

LATEST = -1
READ_COMMITTED = 1
TRANSACTION_COORDINATOR = 1
_numbers = itertools.count(1)


class Scene(Stage):
    """Producers and readers are of the scene's kind; whatever else a test asks it asks by raw requests."""

    def __init__(self, broker: UnderTest, kind: Kind) -> None:
        super().__init__(broker, SharedHosts())
        self.kind = kind
        self.transactional_id = f"{kind.name}-{next(_numbers)}"

    # ---- producers

    def idle_producer(self, *, id: str | None = None, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> Transactor:
        transactor = self.kind.transactor(self.broker.bootstrap, id or self.transactional_id, timeout_ms)
        self._stack.callback(_silently, transactor)
        return transactor

    def producer(self, *, id: str | None = None, timeout_ms: int = TRANSACTION_TIMEOUT_MS) -> Transactor:
        """The producer of its transactional id, the scene's own unless another is named."""
        transactor = self.idle_producer(id=id, timeout_ms=timeout_ms)
        transactor.init()
        return transactor

    def plain(self, topic: str, *values: bytes, partition: int = 0, key: bytes = b"k") -> None:
        """Records without a transaction."""
        with Wire(self.broker.address) as wire:
            assert produce(wire, topic, batch_of(*values, key=key), partition=partition).error_code == 0

    # ---- what is there to see

    def view(self, topic: str, partition: int = 0, *, committed: bool = True) -> list[bytes]:
        """Values that a consumer of this kind sees in the whole partition."""
        read = self.kind.reader(self.broker.bootstrap).read((topic, partition), committed=committed)
        return [value for _, value in read]

    def last_stable(self, topic: str, partition: int = 0) -> int:
        with Wire(self.broker.address) as wire:
            answer = look_up(wire, topic, LATEST, partition=partition, isolation_level=READ_COMMITTED)
        assert answer.error_code == 0, answer
        return int(answer.offset)

    def log_end(self, topic: str, partition: int = 0) -> int:
        with Wire(self.broker.address) as wire:
            return int(look_up(wire, topic, LATEST, partition=partition).offset)

    def until_ended(self, *places: Place) -> None:
        """Wait until no transaction is open in these partitions: markers follow the answer of the commit."""
        for place in places:
            eventually(lambda place=place: self.last_stable(*place) == self.log_end(*place), f"{place} is stable")  # type: ignore[misc]

    def transaction_state(self, id: str | None = None) -> str:
        request = DescribeTransactionsRequest(transactional_ids=[id or self.transactional_id])
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(request).transaction_states
        assert answer.error_code == 0, ErrorCode(answer.error_code)
        return str(answer.transaction_state)

    def until_transaction(self, *states: str, id: str | None = None) -> None:
        eventually(lambda: self.transaction_state(id) in states, f"{states}")

    def stable_offset(self, place: Place, *, group: str | None = None) -> int | ErrorCode:
        """The committed offset as `require_stable` sees it: -1 when there is none, else the code of the refusal."""
        topic, partition = place
        wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        wish = OffsetFetchRequestGroup(group_id=group or self.group, topics=[wanted])
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(OffsetFetchRequest(groups=[wish], require_stable=True), 9).groups
        assert answer.error_code == 0, answer
        found = answer.topics[0].partitions[0]
        return ErrorCode(found.error_code) if found.error_code else int(found.committed_offset)


def _silently(transactor: Transactor) -> None:
    with contextlib.suppress(Exception):
        transactor.close()


def wait_for_transactions(address: tuple[str, int]) -> None:
    """Until transactional ids can be used; Apache Kafka creates the internal topic at the first question for one."""
    names = [f"any-{number}" for number in range(20)]

    def ready() -> bool:
        with Wire(address) as wire:
            wire.ask(FindCoordinatorRequest(key_type=TRANSACTION_COORDINATOR, coordinator_keys=names))
            wishes = [InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000) for name in names]
            return all(wire.ask(wish).error_code == ErrorCode.NONE for wish in wishes)

    eventually(ready, "the transaction coordinator is ready")
