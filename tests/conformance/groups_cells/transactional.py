"""Offsets that are committed in transactions: who may, what is seen meanwhile, and what holds in the end."""

from __future__ import annotations

from collections.abc import Iterator

from tests.conformance.groups_cells.asks import (
    MISSING_TOPIC,
    OTHER_TOPIC,
    STRANGER,
    Ask,
    Commit,
    Delete,
    DeleteOffset,
    Fetch,
    Join,
    Leave,
    ListGroups,
)
from tests.conformance.groups_cells.migration import JOINED, UPGRADED
from tests.conformance.groups_cells.play import Cell
from tests.conformance.groups_cells.states import (
    ABSENT,
    CLASSIC,
    CONSUMER,
    CONSUMER_EMPTY_WITH_OFFSET,
    CONSUMER_ONE,
    CONSUMER_SETTLED,
    CONSUMER_STATIC,
    CONSUMER_STATIC_AWAY,
    EMPTY_WITH_OFFSET,
    SIMPLE,
    STABLE,
    WITH_MEMBERS,
    WITH_STATIC,
)
from tests.conformance.groups_cells.txn_asks import PRODUCER, AddOffsets, End, Init, TxnCommit

BEGUN: tuple[Ask, ...] = (Init(PRODUCER), AddOffsets(PRODUCER))
LOOK: tuple[Ask, ...] = (Fetch("N"), Fetch("N", stable=True))
COMMITTED: tuple[Ask, ...] = (*LOOK, End(PRODUCER), *LOOK)
ABORTED: tuple[Ask, ...] = (*LOOK, End(PRODUCER, commit=False), *LOOK)
NOBODY = {"member": "", "generation": -1}
AS_MEMBER = (3, 4, 5)


def who_may() -> Iterator[Cell]:
    for state in (*CLASSIC, *CONSUMER):
        yield Cell("A transaction's commit", state, TxnCommit("N", **NOBODY), BEGUN, COMMITTED)
        yield Cell("A transaction's commit, aborted", state, TxnCommit("N", **NOBODY), BEGUN, ABORTED, (0, 3, 5))
        yield Cell("A transaction's commit of who has left or leads", state, TxnCommit("A"), BEGUN, LOOK, AS_MEMBER)
        yield Cell(
            "A transaction's commit of a stranger",
            state,
            TxnCommit("N", member=STRANGER, generation=2),
            BEGUN,
            LOOK,
            AS_MEMBER,
        )
        yield Cell(
            "A transaction's commit of a stranger without a generation",
            state,
            TxnCommit("N", member=STRANGER, generation=-1),
            BEGUN,
            LOOK,
            AS_MEMBER,
        )
        yield Cell(
            "A transaction's commit of a generation without an id",
            state,
            TxnCommit("N", member="", generation=1),
            BEGUN,
            LOOK,
            AS_MEMBER,
        )


def members() -> Iterator[Cell]:
    for state in WITH_MEMBERS:
        for name, ask in {
            "of the follower": TxnCommit("B"),
            "of the last generation": TxnCommit("B", generation=1),
            "of a coming generation": TxnCommit("B", generation=3),
            "of a member without a generation": TxnCommit("B", generation=-1),
        }.items():
            yield Cell(f"A transaction's commit {name}", state, ask, BEGUN, LOOK, AS_MEMBER)
        yield Cell(
            "A transaction's commit of a pending member",
            state,
            TxnCommit("N", generation=-1),
            (*BEGUN, Join("N", v=4)),
            versions=AS_MEMBER,
        )
    for state in (*WITH_STATIC, CONSUMER_STATIC, CONSUMER_STATIC_AWAY):
        for name, ask in {
            "of the instance": TxnCommit("S", instance="s"),
            "of the instance with the id of another": TxnCommit("S", member=STRANGER, instance="s"),
            "of an unknown instance": TxnCommit("S", instance="zz"),
            "of an instance alone": TxnCommit("S", member="", generation=-1, instance="s"),
        }.items():
            yield Cell(f"A transaction's commit {name}", state, ask, BEGUN, versions=AS_MEMBER)
    for state in (CONSUMER_ONE, CONSUMER_SETTLED, UPGRADED, JOINED):
        for name, ask in {
            "of an older epoch": TxnCommit("A", generation=1),
            "of epoch 0": TxnCommit("A", generation=0),
            "of a coming epoch": TxnCommit("A", generation=9),
            "of a member without an epoch": TxnCommit("A", generation=-1),
            "of a partition of another": TxnCommit("A", partitions=(1,)),
            "of an older epoch, of its own and of another's": TxnCommit("A", generation=2, partitions=(0, 1)),
            "of an unsubscribed topic": TxnCommit("A", topic=OTHER_TOPIC),
        }.items():
            yield Cell(f"A transaction's commit {name}", state, ask, BEGUN, LOOK, AS_MEMBER)


def oddities() -> Iterator[Cell]:
    for name, ask in {
        "for a missing topic": TxnCommit("N", topic=MISSING_TOPIC, **NOBODY),
        "for a missing partition": TxnCommit("N", partitions=(7,), **NOBODY),
        "for a partition that is there and one that is not": TxnCommit("N", partitions=(0, 7), **NOBODY),
        "for a negative partition": TxnCommit("N", partitions=(-1,), **NOBODY),
        "with too long a note": TxnCommit("N", metadata="x" * 4097, **NOBODY),
        "without a note": TxnCommit("N", metadata=None, **NOBODY),
        "of a negative offset": TxnCommit("N", offset=-1, **NOBODY),
        "for the offsets themselves": TxnCommit("N", topic="__consumer_offsets", **NOBODY),
    }.items():
        for state in (ABSENT, STABLE):
            yield Cell(f"A transaction's commit {name}", state, ask, BEGUN, COMMITTED, (0, 3, 5))
    yield Cell(
        "A transaction's commit of a stranger for a missing topic",
        ABSENT,
        TxnCommit("N", member=STRANGER, generation=2, topic=MISSING_TOPIC),
        BEGUN,
        versions=AS_MEMBER,
    )
    yield Cell("A transaction's commit without a group", ABSENT, TxnCommit("N", group="", **NOBODY), BEGUN)
    yield Cell(
        "A transaction's commit without a group for a missing topic",
        ABSENT,
        TxnCommit("N", group="", topic=MISSING_TOPIC, **NOBODY),
        BEGUN,
    )
    yield Cell("Offsets of no group are added to a transaction", ABSENT, AddOffsets(PRODUCER, group=""), (Init("P"),))
    yield Cell(
        "A transaction's commit that was not announced",
        ABSENT,
        TxnCommit("N", **NOBODY),
        (Init(PRODUCER),),
        LOOK,
    )
    yield Cell("A commit of nobody's transaction", ABSENT, TxnCommit("N", **NOBODY), (), LOOK)


def what_holds() -> Iterator[Cell]:
    """The last commit holds, by its place in the log; deletions take what is pending with them."""
    pending = (*BEGUN, TxnCommit("N", **NOBODY))
    other = (Init("Q"), AddOffsets("Q"), TxnCommit("N", producer="Q", offset=9, **NOBODY))
    anybody = Commit("N", offset=8, v=9, **NOBODY)
    for state in (ABSENT, SIMPLE, EMPTY_WITH_OFFSET, CONSUMER_EMPTY_WITH_OFFSET):
        yield Cell("A commit beside a transaction's", state, anybody, pending, COMMITTED)
        yield Cell("A commit beside a transaction's, aborted", state, anybody, pending, ABORTED)
        yield Cell("A pending offset is deleted", state, DeleteOffset("N"), pending, (*LOOK, End("P"), *LOOK))
        yield Cell("A group with a pending offset is deleted", state, Delete("N"), pending, COMMITTED, (2,))
        yield Cell(
            "Everything is fetched beside a pending offset",
            state,
            Fetch("N", topic=None),
            pending,
            versions=(2, 9, 10),
        )
        yield Cell(
            "Everything that is stable is fetched beside a pending offset",
            state,
            Fetch("N", topic=None, stable=True),
            pending,
            versions=(7, 8, 9, 10),
        )
        yield Cell(
            "What is stable is fetched beside a pending offset",
            state,
            Fetch("N", stable=True),
            pending,
            versions=(7, 8, 9, 10),
        )
        yield Cell("Groups are listed beside a pending offset", state, ListGroups("N"), pending, versions=(5,))
    for first, second in (("P", "Q"), ("Q", "P")):
        for commit in (True, False):
            yield Cell(
                f"Two transactions, {first} {'committed' if commit else 'aborted'} first, {second} committed",
                SIMPLE,
                End(first, commit=commit),
                (*pending, *other),
                (*LOOK, End(second), *LOOK),
                (4, 5),
            )
    yield Cell("A member leaves with a pending offset", CONSUMER_ONE, Leave("A"), pending, COMMITTED, (5,))


CELLS = (*who_may(), *members(), *oddities(), *what_holds())
