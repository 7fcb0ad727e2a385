"""Our readers in groups of our broker, whatever happens to them."""

from __future__ import annotations

import pytest
from tests.sim.client_groups import STYLES, World

SEEDS = range(2)
STEPS = 25


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_partition_is_read_by_one_and_nothing_is_committed_that_was_not_given(seed: int, style: str) -> None:
    world = World(seed, style)
    world.run(STEPS)
    world.check_the_end()


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("seed", SEEDS)
def test_each_record_is_given_once_when_readers_only_come_and_leave(seed: int, style: str) -> None:
    world = World(seed, style, is_calm=True)
    world.run(STEPS)
    world.check_the_end()


def test_the_same_seed_gives_the_same_run() -> None:
    worlds = [World(3, "cooperative-sticky") for _ in range(2)]
    for world in worlds:
        world.run(STEPS)
    assert worlds[0].story == worlds[1].story
    assert len(worlds[0].story) > STEPS
