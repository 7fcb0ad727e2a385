"""Random requests are answered alike by Apache Kafka and by Lowwater, field by field."""

from __future__ import annotations

import pytest
from tests.conformance.differential.run import Duel, running_duel

REQUESTS = 1500


@pytest.mark.peer("kafka")
@pytest.mark.only_against("lowwater")
def test_both_brokers_answer_random_requests_alike() -> None:
    with running_duel() as duel:
        found = duel.fight(seed=20261115, requests=REQUESTS)
    assert not found, "\n" + "\n".join(Duel.report(found[:20]))
