import pytest

from lowwater.broker.pending import Pending, run


def test_a_coroutine_that_never_waits_is_settled_at_once():
    async def answer() -> int:
        return 42

    assert run(answer()).result() == 42


def test_a_coroutine_goes_on_when_what_it_waits_for_is_settled():
    first: Pending[int] = Pending()
    second: Pending[int] = Pending()

    async def add() -> int:
        return await first + await second

    outcome = run(add())
    assert not outcome.done
    first.resolve(1)
    assert not outcome.done
    second.resolve(2)
    assert outcome.result() == 3


def test_a_failure_reaches_the_coroutine_that_waits():
    broken: Pending[int] = Pending()

    async def guarded() -> str:
        try:
            await broken
        except OSError as error:
            return str(error)
        return "no failure"

    outcome = run(guarded())
    broken.fail(OSError("disk"))
    assert outcome.result() == "disk"


def test_an_uncaught_failure_fails_the_outcome():
    async def explode() -> None:
        raise ValueError("boom")

    outcome = run(explode())
    with pytest.raises(ValueError, match="boom"):
        outcome.result()


def test_callbacks_run_in_order_and_a_late_one_at_once():
    pending: Pending[str] = Pending()
    seen: list[str] = []
    pending.on_done(lambda done: seen.append("first " + done.result()))
    pending.on_done(lambda done: seen.append("second " + done.result()))
    pending.resolve("x")
    pending.on_done(lambda done: seen.append("late " + done.result()))
    assert seen == ["first x", "second x", "late x"]


def test_settling_twice_is_a_bug():
    pending: Pending[int] = Pending()
    pending.resolve(1)
    with pytest.raises(AssertionError):
        pending.resolve(2)


def test_abandoning_tells_whoever_would_settle_it_and_only_while_it_is_open():
    let_go: list[str] = []
    pending: Pending[int] = Pending()
    pending.on_abandon = lambda: let_go.append("gone")
    pending.abandon()
    pending.resolve(1)
    pending.abandon()
    assert let_go == ["gone"]
