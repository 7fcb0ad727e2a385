"""Group commit: who shares an fsync with whom, and what a failed one means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lowwater.broker.durability import SYNCS_MAX, GroupCommit
from lowwater.errors import StorageError
from lowwater.log.flush import SHARED_FROM
from lowwater.pending import Pending
from lowwater.system import SystemClock

Done = Callable[[Any, BaseException | None], None]


class Ticket:
    """Syncs one named file."""

    def __init__(self, log: Log) -> None:
        self.end = log.log_end
        self.files = [log]
        self.root = "everything"
        self.file_count = 1
        self.doubt = self
        self.doubts = 0

    def run(self, disk: Disk) -> None:
        disk.sync_files(self.files)

    def note(self) -> None:
        self.doubts += 1


class Log:
    """What group commit sees of a PartitionLog."""

    def __init__(self, name: str) -> None:
        self.topic_partition = name
        self.log_end = 0
        self.flushed_end = 0
        self.offline: str | None = None
        self.cannot_begin: OSError | None = None

    def begin_flush(self) -> Ticket | None:
        if self.cannot_begin is not None:
            raise self.cannot_begin
        return Ticket(self) if self.flushed_end < self.log_end else None

    def finish_flush(self, ticket: Ticket, error: BaseException | None) -> None:
        if error is not None:
            self.go_offline(str(error))
        else:
            self.flushed_end = max(self.flushed_end, ticket.end)

    def go_offline(self, why: str) -> None:
        self.offline = why

    def failure(self) -> StorageError | None:
        return None if self.offline is None else StorageError(self.offline)


class Disk:
    def __init__(self) -> None:
        self.synced: list[list[Log]] = []
        self.synced_whole = 0
        self.bad: Log | None = None

    def sync_all(self, root: str) -> bool:
        self.synced_whole += 1
        return True

    def sync_files(self, files: list[Log]) -> None:
        self.synced.append(list(files))
        if self.bad in files:
            raise OSError("the disk is broken")


class Threads:
    """Work runs when the test says so."""

    def __init__(self) -> None:
        self.queue: list[tuple[Callable[[], Any], Done]] = []

    def submit(self, work: Callable[[], Any], done: Done) -> None:
        self.queue.append((work, done))

    def run_one(self, place: int = 0) -> None:
        work, done = self.queue.pop(place)
        done(work(), None)

    def run_all(self) -> None:
        while self.queue:
            self.run_one()


class Turns:
    def __init__(self) -> None:
        self.due: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.due.append(callback)

    def turn(self) -> None:
        while self.due:
            self.due.pop(0)()


class Scene:
    def __init__(self) -> None:
        self.disk, self.threads, self.turns = Disk(), Threads(), Turns()
        self.commits = GroupCommit(self.disk, self.threads, self.turns, SystemClock())  # type: ignore[arg-type]

    def append(self, *logs: Log) -> Pending[dict[Any, BaseException]]:
        """One request that writes a record to each log and waits for all of them."""
        for log in logs:
            log.log_end += 1
        return self.commits.flushed([(log, log.log_end) for log in logs])  # type: ignore[misc]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_requests_of_one_turn_share_an_fsync(scene: Scene) -> None:
    log = Log("a")
    first, second = scene.append(log), scene.append(log)
    scene.turns.turn()
    assert len(scene.threads.queue) == 1
    scene.threads.run_all()
    assert first.result() == second.result() == {}
    assert scene.disk.synced == [[log]]


def test_what_comes_during_an_fsync_shares_the_next_one(scene: Scene) -> None:
    log = Log("a")
    first = scene.append(log)
    scene.turns.turn()
    later = [scene.append(log) for _ in range(3)]
    scene.turns.turn()
    assert len(scene.threads.queue) == 1
    scene.threads.run_one()
    assert first.done
    assert not any(one.done for one in later)
    scene.threads.run_all()
    assert all(one.done for one in later)
    assert scene.disk.synced == [[log], [log]]


def test_logs_are_synced_side_by_side_and_answered_each_by_itself(scene: Scene) -> None:
    slow, quick = Log("slow"), Log("quick")
    waits_long, waits_short = scene.append(slow), scene.append(quick)
    scene.turns.turn()
    assert len(scene.threads.queue) == 2
    scene.threads.run_one(1)
    assert waits_short.done
    assert not waits_long.done


def test_a_request_over_several_logs_waits_for_the_last(scene: Scene) -> None:
    logs = [Log("a"), Log("b"), Log("c")]
    answer = scene.append(*logs)
    scene.turns.turn()
    scene.threads.run_one()
    scene.threads.run_one()
    assert not answer.done
    scene.threads.run_one()
    assert answer.result() == {}


def test_no_more_than_a_few_fsyncs_run_side_by_side(scene: Scene) -> None:
    answers = [scene.append(Log(str(number))) for number in range(SYNCS_MAX + 3)]
    scene.turns.turn()
    assert len(scene.threads.queue) == SYNCS_MAX
    scene.threads.run_one()
    assert len(scene.threads.queue) == SYNCS_MAX
    scene.threads.run_all()
    assert all(answer.done for answer in answers)


def test_many_waiting_logs_are_synced_in_one_go(scene: Scene) -> None:
    answers = [scene.append(Log(str(number))) for number in range(SHARED_FROM)]
    scene.turns.turn()
    assert len(scene.threads.queue) == 1
    scene.threads.run_all()
    assert all(answer.done for answer in answers)
    assert (scene.disk.synced_whole, scene.disk.synced) == (1, [])


def test_a_log_that_is_durable_already_is_answered_without_an_fsync(scene: Scene) -> None:
    log = Log("a")
    log.log_end = log.flushed_end = 5
    answer = scene.commits.flushed([(log, 5)])  # type: ignore[list-item]
    scene.turns.turn()
    assert answer.result() == {}
    assert not scene.threads.queue


def test_a_failed_fsync_fails_the_requests_of_its_log_alone(scene: Scene) -> None:
    good, bad = Log("good"), Log("bad")
    scene.disk.bad = bad
    both, only_good = scene.append(good, bad), scene.append(good)
    scene.turns.turn()
    scene.threads.run_all()
    assert list(both.result()) == [bad]
    assert only_good.result() == {}


def test_requests_behind_a_failed_fsync_are_answered_without_another_try(scene: Scene) -> None:
    log = Log("a")
    scene.disk.bad = log
    first = scene.append(log)
    scene.turns.turn()
    second = scene.append(log)
    scene.threads.run_all()
    scene.turns.turn()
    assert list(first.result()) == list(second.result()) == [log]
    assert scene.disk.synced == [[log]]


def test_a_log_whose_files_cannot_be_opened_goes_offline_and_the_others_go_on(scene: Scene) -> None:
    good, bad = Log("good"), Log("bad")
    bad.cannot_begin = OSError("too many open files")
    refused, served = scene.append(bad), scene.append(good)
    scene.turns.turn()
    scene.threads.run_all()
    assert list(refused.result()) == [bad]
    assert served.result() == {}
    assert bad.offline is not None


def test_logs_that_need_no_fsync_do_not_keep_the_others_waiting(scene: Scene) -> None:
    durable = [Log(f"durable {number}") for number in range(SYNCS_MAX)]
    for log in durable:
        log.log_end = log.flushed_end = 5
    answers = [scene.commits.flushed([(log, 5)]) for log in durable]  # type: ignore[list-item]
    answers += [scene.append(Log(f"new {number}")) for number in range(3)]
    scene.turns.turn()
    scene.threads.run_all()
    assert all(answer.done for answer in answers)


def test_offline_logs_are_answered_at_once_however_many_there_are(scene: Scene) -> None:
    logs = [Log(str(number)) for number in range(3 * SYNCS_MAX)]
    for log in logs:
        log.offline = "broken"
    answers = [scene.append(log) for log in logs]
    scene.turns.turn()
    assert [list(answer.result()) for answer in answers] == [[log] for log in logs]
