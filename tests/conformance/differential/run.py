"""Send the same random requests to both brokers and collect what is answered differently."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.conformance.asking import topic_id
from tests.conformance.conftest import create_topic
from tests.conformance.differential.compare import Difference, differences, plain
from tests.conformance.differential.group_requests import GROUP_SHOTS
from tests.conformance.differential.requests import EXISTING, SHOTS
from tests.conformance.differential.shots import Shot
from tests.conformance.groups_cells.record import wait_for_coordinator
from tests.conformance.raw import ConnectionEndedError, Wire
from tests.conformance.under_test import UnderTest, running

CLOSED = "the connection was closed"


class Finding(NamedTuple):
    shot: Shot
    request: Any
    difference: Difference


class Side:
    """One of the two brokers."""

    def __init__(self, broker: UnderTest) -> None:
        self.broker = broker
        for name, config in EXISTING.items():
            create_topic(broker.address, name, partitions=2, **config)
        wait_for_coordinator(broker.address)
        self.wire = Wire(broker.address)
        self.ids = {name: topic_id(self.wire, name) for name in EXISTING}
        self.names = {id: name for name, id in self.ids.items()}

    def answer(self, shot: Shot) -> Any:
        try:
            return plain(self.wire.ask(shot.make(self.ids), shot.version), self.names)
        except ConnectionEndedError:
            self.wire = Wire(self.broker.address)
            return CLOSED


class Duel:
    def __init__(self, kafka: Side, lowwater: Side) -> None:
        self.kafka = kafka
        self.lowwater = lowwater

    def fight(self, seed: int, requests: int) -> list[Finding]:
        pick = random.Random(seed)
        found = []
        for _ in range(requests):
            shot = pick.choice(SHOTS if pick.random() < 0.5 else GROUP_SHOTS)(pick)
            answers = self.kafka.answer(shot), self.lowwater.answer(shot)
            found += [Finding(shot, shot.make(self.kafka.ids), each) for each in differences(*answers)]
        return found

    @staticmethod
    def report(found: list[Finding]) -> Iterator[str]:
        for shot, request, (where, kafka, lowwater) in found:
            yield f"{shot.api} v{shot.version} {where}: kafka {kafka!r}, lowwater {lowwater!r}"
            yield f"    {request!r}"


@contextlib.contextmanager
def running_duel() -> Iterator[Duel]:
    with running("kafka") as kafka, running("lowwater") as lowwater:
        yield Duel(Side(kafka), Side(lowwater))
