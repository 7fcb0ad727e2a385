"""What a sink has committed and what it has decided to commit: one record of the ledger, the last of its key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from lowwater.spark.exactly_once.errors import LedgerError

VERSION = 1
REMEMBERED_MAX = 100
"""So many queries and runs of one sink are known; of those before them nothing is."""


class Fence(NamedTuple):
    """Who may commit for a sink: the producer that took its transactional id last."""

    producer_id: int
    epoch: int


class Transaction(NamedTuple):
    """One that a task has written and left open."""

    id: str
    producer_id: int
    epoch: int


class Intent(NamedTuple):
    """A batch that is committed as soon as this is: what is left to do is to end its transactions."""

    name: str
    batch: int
    transactions: tuple[Transaction, ...]


@dataclass(frozen=True, slots=True)
class SinkState:
    """`commits` counts intents. `done` is the last batch of each query, 0 of a run; the one used last stands last."""

    commits: int = 0
    done: Mapping[str, int] = field(default_factory=dict)
    intent: Intent | None = None

    def is_done(self, name: str, batch: int) -> bool:
        return batch <= self.done.get(name, -1)

    def intending(self, intent: Intent) -> SinkState:
        """From here on the batch is committed, whatever happens."""
        assert self.intent is None, "an intent is finished before there is another"
        return replace(self, commits=self.commits + 1, intent=intent)

    def finished(self) -> SinkState:
        """The intent's transactions are all ended."""
        assert self.intent is not None
        done = {name: batch for name, batch in self.done.items() if name != self.intent.name}
        done[self.intent.name] = self.intent.batch
        kept = list(done.items())[-REMEMBERED_MAX:]
        return replace(self, done=dict(kept), intent=None)


def to_value(state: SinkState) -> bytes:
    value: dict[str, Any] = {"lowwater": VERSION, "commits": state.commits, "done": dict(state.done)}
    if state.intent is not None:
        name, batch, transactions = state.intent
        value["intent"] = {"name": name, "batch": batch, "transactions": [list(each) for each in transactions]}
    return json.dumps(value, separators=(",", ":")).encode()


def from_value(value: bytes) -> SinkState:
    """LedgerError for what a newer version wrote, or somebody else: half understood, rows would be lost or doubled."""
    try:
        fields = json.loads(value)
        version = fields["lowwater"]
        if version != VERSION:
            raise LedgerError(f"the sinks' ledger was written by a newer Lowwater (version {version}): install that")
        return SinkState(
            int(fields["commits"]),
            {str(name): int(batch) for name, batch in fields["done"].items()},
            _intent(fields.get("intent")),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LedgerError(f"a record of the sinks' ledger is not understood: {error!r}") from None


def _intent(fields: Any) -> Intent | None:
    if fields is None:
        return None
    transactions = tuple(Transaction(str(id_), int(who), int(epoch)) for id_, who, epoch in fields["transactions"])
    return Intent(str(fields["name"]), int(fields["batch"]), transactions)
