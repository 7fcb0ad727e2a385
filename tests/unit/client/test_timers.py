"""Timers of the blocking driver, and Ctrl-C at a safe place."""

from __future__ import annotations

import os
import signal

import pytest

from lowwater.client.buffers import Buffers
from lowwater.client.interrupts import Interrupts
from lowwater.client.timers import CLEAR_FROM, Timers

MB = 1024 * 1024


def test_timers_are_taken_in_the_order_of_their_time_then_of_their_making() -> None:
    timers = Timers()
    told: list[str] = []
    for due_ms, name in ((20, "c"), (10, "a"), (20, "d"), (10, "b"), (30, "e")):
        timers.add(due_ms, lambda name=name: told.append(name))  # type: ignore[misc]
    for callback in timers.take_due(20):
        callback()
    assert told == ["a", "b", "c", "d"]
    assert timers.next_ms() == 30


def test_a_cancelled_timer_is_not_taken() -> None:
    timers = Timers()
    kept, cancelled = timers.add(10, lambda: None), timers.add(5, lambda: None)
    cancelled.cancel()
    cancelled.cancel()
    assert timers.next_ms() == 10
    assert len(timers) == 1
    assert len(timers.take_due(10)) == 1
    kept.cancel()
    assert len(timers) == 0


def test_cancelled_timers_do_not_pile_up() -> None:
    timers = Timers()
    for due_ms in range(10_000):
        timers.add(30_000 + due_ms, lambda: None).cancel()
        assert len(timers._heap) <= 2 * CLEAR_FROM + 1


def test_ctrl_c_waits_for_the_next_safe_place() -> None:
    woken: list[bool] = []
    interrupts = Interrupts(lambda: woken.append(True))
    with interrupts:
        os.kill(os.getpid(), signal.SIGINT)
        assert woken == [True]
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_that_came_at_the_very_end_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt), Interrupts(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_taken_as_bytes_arrive_and_not_as_they_are_announced() -> None:
    buffers = Buffers()
    before = _resident_bytes()
    lease = buffers.lease(100 * MB)
    assert _resident_bytes() - before < 5 * MB
    lease.view[: 20 * MB] = bytes(20 * MB)
    assert _resident_bytes() - before < 50 * MB


def test_no_more_memory_is_kept_than_allowed() -> None:
    buffers = Buffers(kept_bytes_max=2 * MB)
    leases = [buffers.lease(MB) for _ in range(5)]
    for lease in leases:
        lease.release()
    assert buffers.kept_bytes == 2 * MB
    buffers.clear()
    assert buffers.kept_bytes == 0


def test_whoever_gave_much_back_at_once_finds_it_again() -> None:
    buffers = Buffers(kept_bytes_max=MB, all_bytes_max=5 * MB)
    for lease in [buffers.lease(MB) for _ in range(6)]:
        lease.release()
    assert buffers.kept_bytes == 5 * MB
    large = buffers.lease(4 * MB)
    assert buffers.kept_bytes == MB, "beside what is in use, little"
    large.release()
    assert buffers.kept_bytes == 5 * MB


def test_memory_is_used_again_for_answers_that_are_not_much_smaller() -> None:
    buffers = Buffers()
    buffers.lease(4 * MB).release()
    smaller = buffers.lease(3 * MB)
    assert buffers.kept_bytes == 0
    assert len(smaller.view) == 3 * MB
    smaller.release()
    buffers.lease(MB)
    assert buffers.kept_bytes == 4 * MB


def test_a_lease_that_is_released_twice_is_given_to_one_only() -> None:
    buffers = Buffers()
    lease = buffers.lease(MB)
    lease.release()
    lease.release()
    first, second = buffers.lease(MB), buffers.lease(MB)
    first.view[:1] = b"1"
    second.view[:1] = b"2"
    assert bytes(first.view[:1]) == b"1"
