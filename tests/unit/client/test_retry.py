"""What is tried again, how often, and what is said in the end."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from tests.unit.client.virtual import VirtualDriver, talking

from lowwater.client.config import ClientConfig
from lowwater.client.errors import (
    AuthorizationError,
    BrokerError,
    ClientError,
    ConnectError,
    OffsetOutOfRangeError,
    UnknownTopicError,
    broker_error,
)
from lowwater.client.flow import Flow
from lowwater.client.retry import Retry
from lowwater.errors import ErrorCode


def retrying(**settings: Any) -> tuple[VirtualDriver, Retry]:
    driver = VirtualDriver(talking({}))
    config = ClientConfig({name.replace("_", "."): value for name, value in settings.items()})
    return driver, Retry(config, driver)


class Attempts:
    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.left_ms: list[float] = []

    async def __call__(self, left_ms: float) -> Any:
        self.left_ms.append(left_ms)
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, ClientError):
            raise outcome
        return outcome


def test_what_may_succeed_later_is_tried_again() -> None:
    driver, retry = retrying()
    attempts = Attempts(ConnectError("away"), broker_error(ErrorCode.NOT_COORDINATOR), "done")
    flow = Flow(retry.run(attempts))
    driver.time.advance(1_000)
    assert flow.result() == "done"


def test_what_no_retry_mends_is_raised_at_once() -> None:
    _, retry = retrying()
    attempts = Attempts(broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED))
    with pytest.raises(AuthorizationError):
        Flow(retry.run(attempts)).result()
    assert len(attempts.left_ms) == 1


def test_the_last_error_says_how_often_and_how_long() -> None:
    driver, retry = retrying(retry_backoff_ms=100, retry_backoff_max_ms=400)
    attempts = Attempts(ConnectError("a:1 refuses connections"))
    flow = Flow(retry.run(attempts, timeout_ms=2_000))
    driver.time.advance(2_000)
    with pytest.raises(ConnectError, match=r"a:1 refuses connections; tried \d+ times in 1\.\d s") as failure:
        flow.result()
    assert failure.value.tries == len(attempts.left_ms) >= 4
    assert attempts.left_ms[0] == 2_000
    assert attempts.left_ms == sorted(attempts.left_ms, reverse=True)


def test_a_flow_that_is_given_up_tries_no_more() -> None:
    driver, retry = retrying()
    attempts = Attempts(ConnectError("away"))
    flow = Flow(retry.run(attempts))
    flow.cancel()
    assert driver.time.timers == 0
    assert len(attempts.left_ms) == 1


def test_errors_say_what_where_and_what_to_do() -> None:
    error = broker_error(
        ErrorCode.OFFSET_OUT_OF_RANGE, topic="orders", partition=3, offset=17, advice="start at earliest"
    )
    assert isinstance(error, OffsetOutOfRangeError)
    text = str(error.within(20, 40))
    assert text == (
        "'orders' partition 3 offset 17: OFFSET_OUT_OF_RANGE, the offset is not within the log [20, 40]; "
        "start at earliest"
    )


def test_a_code_of_a_newer_broker_is_told_as_a_number() -> None:
    error = broker_error(4711)
    assert type(error) is BrokerError
    assert (error.code, error.retriable, str(error)) == (4711, False, "error 4711, which is not known here")


@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_errors_survive_being_copied_and_sent_to_another_process(again: Any) -> None:
    error = UnknownTopicError(3, topic="t", partition=1, advice="create it").after(7, 1_500)
    other = again(error)
    assert type(other) is UnknownTopicError
    assert str(other) == str(error)
    assert (other.code, other.topic, other.tries, other.retriable) == (3, "t", 7, True)
