"""Brokers come, go and move; the client follows, and waits longer and longer for those that are away."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.client.virtual import LATER, VirtualDriver, network_of, refused, talking, versions_answer

from lowwater.client.config import Address
from lowwater.client.errors import AuthenticationError, ClosedError, ConnectError, DisconnectedError, TlsError
from lowwater.client.flow import Flow
from lowwater.client.network import COORDINATING, FETCHING, Network
from lowwater.wire.messages import FetchRequest, HeartbeatRequest, HeartbeatResponse

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def brokers(answers: dict[str, Any] | None = None, seed: int = 0) -> VirtualDriver:
    return VirtualDriver(talking(answers or {"Heartbeat": HeartbeatResponse()}), seed)


def dialled(driver: VirtualDriver) -> list[Address]:
    return [address for _, address in driver.dialled]


def test_nothing_is_opened_before_something_is_asked() -> None:
    driver = brokers()
    network_of(driver, bootstrap_servers="a:1,b:2").learn({1: A, 2: B})
    driver.time.advance(10_000)
    assert driver.lines == []


def test_a_broker_has_one_connection_whatever_is_asked() -> None:
    driver = brokers()
    network = network_of(driver)
    network.learn({1: A})
    for _ in range(20):
        network.ask(1, BEAT)
    driver.time.settle()
    assert len(driver.lines) == 1


def test_where_we_began_is_not_connected_to_a_second_time() -> None:
    driver = brokers()
    network = network_of(driver, bootstrap_servers="a:1")
    network.ask_any(BEAT)
    driver.time.settle()
    network.learn({1: A, 2: B})
    network.ask(1, BEAT)
    driver.time.settle()
    assert dialled(driver) == [A]


def test_a_bootstrap_connection_that_is_no_broker_by_that_name_is_closed() -> None:
    driver = brokers()
    network = network_of(driver, bootstrap_servers="a:1")
    network.ask_any(BEAT)
    driver.time.settle()
    network.learn({1: B})
    assert driver.open_lines == []


def test_bootstrap_servers_are_tried_in_turn() -> None:
    driver = brokers()
    driver.unreachable = {A: refused(A), B: refused(B)}
    network = network_of(driver, bootstrap_servers="a:1,b:2,c:3")
    for _ in range(2):
        failing = network.ask_any(BEAT)
        driver.time.settle()
        with pytest.raises(ConnectError):
            failing.result()
    answered = network.ask_any(BEAT)
    driver.time.settle()
    assert answered.result().error_code == 0
    assert dialled(driver) == [A, B, C]


def test_when_all_brokers_are_gone_the_bootstrap_servers_are_asked_again() -> None:
    driver = brokers()
    network = network_of(driver, bootstrap_servers="c:3")
    network.learn({1: A, 2: B})
    driver.unreachable = {A: refused(A), B: refused(B)}
    for _ in range(2):
        network.ask_any(BEAT)
        driver.time.settle()
    network.ask_any(BEAT)
    driver.time.settle()
    assert dialled(driver)[-1] == C


def test_waits_before_connecting_again_double_up_to_a_limit_with_jitter() -> None:
    driver = brokers()
    driver.unreachable = {A: refused(A)}
    network = network_of(driver, reconnect_backoff_ms=100, reconnect_backoff_max_ms=800)
    network.learn({1: A})
    for _ in range(600):
        network.ask(1, BEAT)
        driver.time.advance(10)
    times = [at_ms for at_ms, _ in driver.dialled]
    waits = [after - before for before, after in pairwise(times)]
    for wait, middle in zip(waits, [100, 200, 400, 800, 800, 800], strict=False):
        assert 0.8 * middle <= wait <= 1.2 * middle + 10
    assert len({round(wait) for wait in waits[3:]}) > 1


def test_two_clients_do_not_wait_alike() -> None:
    waits = set()
    for seed in range(5):
        driver = brokers(seed=seed)
        driver.unreachable = {A: refused(A)}
        network = network_of(driver, reconnect_backoff_ms=1000, reconnect_backoff_max_ms=1000)
        network.learn({1: A})
        network.ask(1, BEAT)
        driver.time.settle()
        network.ask(1, BEAT)
        driver.time.advance(1_500)
        waits.add(driver.dialled[1][0])
    assert len(waits) == 5


def test_a_connection_that_stood_starts_the_waits_anew() -> None:
    driver = brokers()
    driver.unreachable = {A: refused(A)}
    network = network_of(driver, reconnect_backoff_ms=100, reconnect_backoff_max_ms=10_000)
    network.learn({1: A})
    for _ in range(5):
        network.ask(1, BEAT)
        driver.time.advance(2_000)
    driver.unreachable = {}
    network.ask(1, BEAT)
    driver.time.advance(10_000)
    driver.lines[-1].drop()
    before = len(driver.dialled)
    network.ask(1, BEAT)
    driver.time.advance(121)
    assert len(driver.dialled) == before + 1


def test_what_was_not_sent_yet_outlives_a_broken_connection() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver, max_in_flight=1)
    network.learn({1: A})
    sent, queued = network.ask(1, BEAT), network.ask(1, BEAT)
    driver.time.settle()
    driver.lines[0].drop()
    with pytest.raises(DisconnectedError):
        sent.result()
    driver.answer = talking({"Heartbeat": HeartbeatResponse()})
    driver.time.advance(1_000)
    assert queued.result().error_code == 0


@pytest.mark.parametrize("error", [TlsError("not trusted"), AuthenticationError("no")])
def test_a_failure_that_no_retry_mends_is_told_at_once(error: TlsError | AuthenticationError) -> None:
    driver = brokers()
    driver.unreachable = {A: error}  # type: ignore[dict-item]
    network = network_of(driver)
    network.learn({1: A})
    answers = [network.ask(1, BEAT) for _ in range(3)]
    driver.time.settle()
    for answer in answers:
        with pytest.raises(type(error)) as failure:
            answer.result()
        assert not failure.value.retriable


def test_a_broker_that_moved_is_followed() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver, bootstrap_servers="c:3")
    network.learn({1: A})
    old = network.ask(1, BEAT)
    driver.time.settle()
    network.learn({1: B})
    with pytest.raises(DisconnectedError, match="broker 1 has moved to b:2"):
        old.result()
    network.ask(1, BEAT)
    driver.time.settle()
    assert [line.address for line in driver.open_lines] == [B]


def test_a_broker_that_left_is_let_go() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver, bootstrap_servers="c:3")
    network.learn({1: A, 2: B})
    old = network.ask(1, BEAT)
    driver.time.settle()
    network.learn({2: B})
    with pytest.raises(DisconnectedError, match="broker 1 has left the cluster"):
        old.result()
    with pytest.raises(ConnectError, match="broker 1 is not known"):
        network.ask(1, BEAT).result()
    assert driver.open_lines == []


def test_a_connection_without_use_is_closed_and_opened_again_when_needed() -> None:
    driver = brokers()
    network = network_of(driver, connections_max_idle_ms=1_000)
    network.learn({1: A})
    network.ask(1, BEAT)
    driver.time.advance(900)
    network.ask(1, BEAT)
    driver.time.advance(900)
    assert len(driver.open_lines) == 1
    driver.time.advance(300)
    assert driver.open_lines == []
    again = network.ask(1, BEAT)
    driver.time.settle()
    assert again.result().error_code == 0
    assert len(driver.lines) == 2


def test_versions_are_known_once_there_is_a_connection() -> None:
    driver = brokers({"ApiVersions": lambda asked: versions_answer({1: (4, 11), 18: (0, 4)})})
    network = network_of(driver)
    network.learn({1: A})
    asking = Flow(network.supports(1, FetchRequest))
    driver.time.settle()
    assert asking.result() == range(4, 12)
    missing = Flow(network.supports(1, HeartbeatRequest))
    assert missing.result() == range(0)


def test_closing_closes_every_connection_and_tells_everyone_who_waits() -> None:
    driver = brokers({"Heartbeat": LATER})
    driver.silent = {C}
    network = network_of(driver, bootstrap_servers="c:3", max_in_flight=1)
    network.learn({1: A, 2: B, 3: C})
    answers = [network.ask(node, BEAT) for node in (1, 1, 2, 3)]
    driver.time.settle()
    network.close()
    for answer in [*answers, network.ask(1, BEAT)]:
        with pytest.raises(ClosedError):
            answer.result()
    assert driver.open_lines == []
    assert driver.time.timers == 0


def test_what_waits_long_at_a_broker_has_a_connection_of_its_own() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver, max_in_flight=1)
    network.learn({1: A})
    for lane in (FETCHING, COORDINATING):
        network.ask(1, BEAT, lane=lane)
    driver.time.settle()
    driver.answer = talking({"Heartbeat": HeartbeatResponse()})
    usual = network.ask(1, BEAT)
    driver.time.settle()
    assert usual.result().error_code == 0
    assert len(driver.open_lines) == 3


def test_every_lane_follows_a_broker_that_moved() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver)
    network.learn({1: A})
    waiting = [network.ask(1, BEAT, lane=lane) for lane in ("", FETCHING)]
    driver.time.settle()
    network.learn({1: B})
    assert all(each.done for each in waiting)
    assert driver.open_lines == []


def test_who_is_told_that_a_broker_moved_asks_it_where_it_is_now() -> None:
    driver = brokers({"Heartbeat": LATER})
    network = network_of(driver)
    network.learn({1: A})

    async def insist() -> int:
        try:
            await network.ask(1, BEAT)
        except DisconnectedError:
            driver.answer = talking({"Heartbeat": HeartbeatResponse()})
            return int((await network.ask(1, BEAT)).error_code)
        return -1

    flow = Flow(insist())
    driver.time.settle()
    network.learn({1: B})
    driver.time.settle()
    assert flow.result() == 0
    assert dialled(driver) == [A, B]


def test_a_broker_that_wants_quiet_is_left_alone_for_so_long() -> None:
    driver = brokers({"Heartbeat": HeartbeatResponse(throttle_time_ms=700)})
    network = network_of(driver)
    network.learn({1: A})
    first = network.ask(1, BEAT)
    driver.time.settle()
    assert first.result().throttle_time_ms == 700
    network.ask(1, BEAT)
    driver.time.advance(699)
    assert len(driver.requests("Heartbeat")) == 1
    driver.time.advance(2)
    assert len(driver.requests("Heartbeat")) == 2


def ask_for(driver: VirtualDriver, network: Network, seconds: int) -> None:
    """As whoever does not give up."""
    for _ in range(seconds):
        network.ask_any(BEAT)
        driver.time.advance(1_000)


def test_a_broker_that_cannot_be_reached_is_told_once_when_it_takes_long(caplog: pytest.LogCaptureFixture) -> None:
    driver = brokers({})
    driver.unreachable = {A: refused(A)}
    network = network_of(driver)
    ask_for(driver, network, 4)
    assert not caplog.records
    ask_for(driver, network, 26)
    [record] = caplog.records
    assert (record.levelname, record.message) == ("WARNING", f"{A} refuses connections; it is tried again")


def test_a_broker_that_goes_away_later_is_told_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    driver = brokers({"Heartbeat": HeartbeatResponse()})
    network = network_of(driver)
    for outages in (1, 2):
        ask_for(driver, network, 12)
        driver.unreachable = {A: refused(A)}
        [line] = driver.open_lines
        line.drop()
        ask_for(driver, network, 30)
        assert [record.message for record in caplog.records] == [
            f"{A} refuses connections; it is tried again"
        ] * outages
        driver.unreachable = {}


def test_a_broker_that_is_away_for_a_moment_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    driver = brokers({"Heartbeat": HeartbeatResponse()})
    network = network_of(driver)
    ask_for(driver, network, 1)
    driver.unreachable = {A: refused(A)}
    [line] = driver.open_lines
    line.drop()
    ask_for(driver, network, 3)
    driver.unreachable = {}
    ask_for(driver, network, 30)
    assert not caplog.records


def test_all_connections_to_one_broker_complain_once(caplog: pytest.LogCaptureFixture) -> None:
    driver = brokers({})
    driver.unreachable = {A: refused(A)}
    network = network_of(driver)
    network.learn({1: A})
    for _ in range(30):
        network.ask(1, BEAT)
        network.ask(1, BEAT, lane="fetching")
        driver.time.advance(1_000)
    assert [record.message for record in caplog.records] == [f"{A} refuses connections; it is tried again"]
