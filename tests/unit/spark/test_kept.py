"""What a worker keeps from task to task."""

from __future__ import annotations

import gc
import os
import time

import pytest

from lowwater.spark.kept import IDLE_S, KEPT_MAX, REUSED, Kept


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class World:
    """The clock and the process as the cache sees them."""

    now_s = 1000.0
    pid = 7


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(time, "monotonic", lambda: world.now_s)
    monkeypatch.setattr(os, "getpid", lambda: world.pid)
    return world


@pytest.fixture
def kept(world: World) -> Kept[Thing]:
    return Kept(lambda settings: Thing(settings["name"]), Thing.close)


def test_the_same_settings_in_any_order_have_the_same_thing(kept: Kept[Thing]) -> None:
    assert kept.get({"name": "a", "x": "1"}) is kept.get({"x": "1", "name": "a"})
    assert kept.get({"name": "a", "x": "1"}) is not kept.get({"name": "a", "x": "2"})


def test_a_thing_that_was_idle_for_long_is_closed_and_made_anew(kept: Kept[Thing], world: World) -> None:
    first = kept.get({"name": "a"})
    world.now_s += IDLE_S - 1
    kept.used({"name": "a"})
    world.now_s += IDLE_S - 1
    assert kept.get({"name": "a"}) is first
    world.now_s += IDLE_S
    assert kept.get({"name": "a"}) is not first
    assert first.is_closed


def test_a_few_are_kept_and_the_one_used_longest_ago_goes(kept: Kept[Thing]) -> None:
    things = [kept.get({"name": str(number)}) for number in range(KEPT_MAX)]
    assert kept.get({"name": "0"}) is things[0]
    kept.get({"name": "new"})
    assert [thing.is_closed for thing in things] == [False, True, *[False] * (KEPT_MAX - 2)]


def test_a_thing_that_failed_is_closed_and_forgotten(kept: Kept[Thing]) -> None:
    first = kept.get({"name": "a"})
    kept.forget({"name": "a"})
    kept.forget({"name": "a"})
    assert first.is_closed
    assert kept.get({"name": "a"}) is not first


def test_a_fork_neither_uses_nor_closes_what_its_parent_had(kept: Kept[Thing], world: World) -> None:
    first = kept.get({"name": "a"})
    world.pid = 8
    assert kept.get({"name": "a"}) is not first
    assert not first.is_closed


def test_what_a_worker_has_loaded_is_not_searched_for_garbage_after_every_task(
    kept: Kept[Thing], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in processes that Spark uses again, and once in each: what later tasks leave behind is found."""
    frozen: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(world.pid))
    monkeypatch.delenv(REUSED, raising=False)
    world.pid = 71
    kept.get({"name": "a"})
    kept.used({"name": "a"})
    assert not frozen
    monkeypatch.setenv(REUSED, "1")
    for world.pid in (71, 71, 72):
        kept.used({"name": "a"})
    assert frozen == [71, 72]
