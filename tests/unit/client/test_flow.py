"""Coroutines that wait for Pendings, and are given up."""

from __future__ import annotations

import gc
import weakref

import pytest

from lowwater.client.flow import Flow, GivenUpError
from lowwater.pending import Pending


def test_a_flow_goes_on_when_what_it_waits_for_is_there() -> None:
    first: Pending[int] = Pending()
    second: Pending[int] = Pending()

    async def add() -> int:
        return await first + await second

    flow = Flow(add())
    first.resolve(1)
    assert not flow.done
    second.resolve(2)
    assert flow.result() == 3


def test_what_a_flow_raises_is_its_result() -> None:
    async def fail() -> None:
        raise ValueError("so")

    with pytest.raises(ValueError, match="so"):
        Flow(fail()).result()


def test_a_cancelled_flow_lets_go_of_what_it_waits_for_and_cleans_up() -> None:
    waits: Pending[int] = Pending()
    told: list[str] = []
    waits.on_abandon = lambda: told.append("abandoned")

    async def wait() -> int:
        try:
            return await waits
        finally:
            told.append("cleaned up")

    flow = Flow(wait())
    flow.cancel()
    assert told == ["abandoned", "cleaned up"]
    with pytest.raises(GivenUpError):
        flow.result()
    waits.resolve(1)  # too late, and no harm
    flow.cancel()


def test_cancelling_reaches_flows_within_flows() -> None:
    told: list[str] = []
    innermost: Pending[int] = Pending()
    innermost.on_abandon = lambda: told.append("abandoned")

    async def inner() -> int:
        return await innermost

    async def outer() -> int:
        return await Flow(inner())

    flow = Flow(outer())
    flow.cancel()
    assert told == ["abandoned"]
    assert flow.done


def test_a_flow_may_wait_once_more_while_it_cleans_up() -> None:
    never: Pending[None] = Pending()
    goodbye: Pending[None] = Pending()

    async def leave() -> None:
        try:
            await never
        finally:
            await goodbye

    flow = Flow(leave())
    flow.cancel()
    assert not flow.done
    goodbye.resolve(None)
    with pytest.raises(GivenUpError):
        flow.result()


def test_ten_thousand_answers_that_are_there_already_need_no_stack() -> None:
    ready: Pending[int] = Pending()
    ready.resolve(1)

    async def add() -> int:
        return sum([await ready for _ in range(10_000)])

    assert Flow(add()).result() == 10_000


def test_what_a_flow_gave_does_not_wait_for_the_garbage_collector() -> None:
    """It may be a batch of many megabytes."""

    class Batch:
        pass

    async def read() -> Batch:
        return Batch()

    gc.disable()
    try:
        given = weakref.ref(Flow(read()).result())
        assert given() is None
    finally:
        gc.enable()
