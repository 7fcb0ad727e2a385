import pytest

from lowwater.errors import ApiError, ErrorCode
from lowwater.pending import Pending, run


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


def refused() -> ApiError:
    return ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "not now")


def test_an_answer_can_be_changed_before_it_is_there() -> None:
    pending: Pending[int] = Pending()
    doubled = pending.map(lambda value: 2 * value)
    pending.resolve(4)
    assert doubled.result() == 8


def test_what_a_change_raises_is_the_failure_of_the_changed_answer() -> None:
    pending: Pending[int] = Pending()
    broken = pending.map(lambda value: value // 0)
    pending.resolve(4)
    with pytest.raises(ZeroDivisionError):
        broken.result()
    assert pending.result() == 4


def test_a_refusal_can_become_an_answer_and_any_other_failure_stays_one() -> None:
    pending: Pending[object] = Pending()
    recovered = pending.recover(lambda error: error.code)
    pending.fail(refused())
    assert recovered.result() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    pending = Pending()
    recovered = pending.recover(lambda error: error.code)
    pending.fail(ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        recovered.result()


def test_answers_that_are_all_there_are_gathered_at_once() -> None:
    assert Pending.gather([1, 2], sum) == 3
    assert Pending.gather([], sum) == 0


def test_gathered_answers_come_when_the_last_one_does_in_the_order_asked() -> None:
    first: Pending[int] = Pending()
    last: Pending[int] = Pending()
    together = Pending.gather([first, 2, last], list)
    assert isinstance(together, Pending)
    last.resolve(3)
    assert not together.done
    first.resolve(1)
    assert together.result() == [1, 2, 3]


def test_one_failure_is_the_failure_of_all_that_is_gathered() -> None:
    first: Pending[int] = Pending()
    last: Pending[int] = Pending()
    together = Pending.gather([first, last], list)
    assert isinstance(together, Pending)
    first.fail(refused())
    last.resolve(1)
    with pytest.raises(ApiError):
        together.result()
