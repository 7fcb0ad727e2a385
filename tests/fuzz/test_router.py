"""Hostile requests without sockets: the same bytes, in the same order, at the same virtual time, every run."""

from __future__ import annotations

import pytest
from tests.fuzz.attacks import KINDS, ROUTES, attack
from tests.fuzz.router import FRAME_LIMIT, run

from lowwater.broker.router import SERVED_APIS


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_router_answers_or_ends_the_connection_whatever_it_is_sent(seed: int) -> None:
    report = run(1500, seed=seed)
    assert not report.problems, f"python -m tests.fuzz.router --seed {seed} --attacks 1500\n{report}"
    assert report.answered > 1000, f"too little of it was understood to prove anything: {report}"


def test_every_api_and_version_that_is_served_is_attacked() -> None:
    assert {api.key for api, _ in ROUTES} == set(SERVED_APIS)
    hit = {
        number % len(ROUTES) for number in range(1500) if attack(1, number, FRAME_LIMIT).name in ("valid", "mutated")
    }
    assert len(hit) == len(ROUTES)


def test_an_attack_is_the_same_bytes_every_time() -> None:
    for number in range(100):
        assert attack(7, number, FRAME_LIMIT) == attack(7, number, FRAME_LIMIT)


def test_every_kind_of_attack_occurs() -> None:
    assert len({attack(1, number, FRAME_LIMIT).name for number in range(500)}) == len(KINDS)
