"""The driver with a thread of its own: it goes on while the caller does not, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.client.drivers import LIMIT_MS, come_down_to, open_sockets

from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, ClosedError, RequestTimeoutError
from lowwater.client.flow import Flow
from lowwater.client.network import Network
from lowwater.client.threaded import ThreadedDriver
from lowwater.pending import Pending
from lowwater.testing import Broker

LIMIT_S = LIMIT_MS / 1000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


class Client:
    """A driver with a cluster over it."""

    def __init__(self, broker: Broker) -> None:
        config = ClientConfig({"bootstrap.servers": broker.bootstrap})
        self.driver = ThreadedDriver(config)
        self.network = Network(config, self.driver)
        self.cluster = Cluster(self.network)

    def run(self, coroutine: Any, timeout_ms: float | None = LIMIT_MS) -> Any:
        return self.driver.run(coroutine, timeout_ms)

    def close(self) -> None:
        async def end() -> None:
            self.network.close()

        self.run(end())
        self.driver.close()


@pytest.fixture
def client(broker: Broker) -> Iterator[Client]:
    client = Client(broker)
    yield client
    client.driver.close()


async def number(value: int = 1) -> int:
    return value


def new_threads(before: list[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lowwater-client" and thread not in before]


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Begun elsewhere; what it gave or raised is in the list when the thread has ended."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, outcome


def test_flows_go_on_while_the_caller_does_something_else(client: Client) -> None:
    gone_on = threading.Event()

    async def beat() -> None:
        for _ in range(3):
            await client.cluster.brokers()
        gone_on.set()

    async def begin() -> None:
        Flow(beat())

    client.run(begin())
    assert gone_on.wait(LIMIT_S)


def test_many_threads_call_at_the_same_time(client: Client) -> None:
    begun = [in_thread(lambda value=value: client.run(number(value))) for value in range(20)]
    for thread, _ in begun:
        thread.join(LIMIT_S)
    assert [outcome for _, outcome in begun] == [[value] for value in range(20)]
    assert len(client.run(client.cluster.brokers())) == 1


def test_what_a_flow_raises_is_raised_to_its_caller_alone(client: Client) -> None:
    async def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        client.run(fail())
    assert client.run(number()) == 1


def test_a_call_whose_time_is_over_is_cancelled_before_it_raises(client: Client) -> None:
    let_go = threading.Event()

    async def wait() -> None:
        try:
            await Pending[None]()
        finally:
            let_go.set()

    with pytest.raises(RequestTimeoutError):
        client.run(wait(), 20)
    assert let_go.is_set()
    assert client.run(number()) == 1


def test_waiting_leaves_what_is_waited_for_alone(client: Client) -> None:
    slow: Pending[int] = Pending()
    assert not client.driver.wait(slow, 20)
    client.driver.post(lambda: slow.resolve(7))
    assert client.driver.wait(slow, LIMIT_MS)
    assert slow.result() == 7


def test_ctrl_c_ends_the_callers_call_and_nothing_else(client: Client) -> None:
    went_on = threading.Event()
    interrupted = threading.Event()

    async def begin() -> None:
        async def background() -> None:
            while not interrupted.is_set():
                await sleep(client.driver, 5)
            went_on.set()

        Flow(background())

    async def wait() -> None:
        client.driver.call_later(20, lambda: os.kill(os.getpid(), signal.SIGINT))
        await Pending[None]()

    client.run(begin())
    with pytest.raises(KeyboardInterrupt):
        client.run(wait(), None)
    interrupted.set()
    assert went_on.wait(LIMIT_S)
    assert client.run(number()) == 1


def test_slow_work_holds_nothing_up(client: Client) -> None:
    release = threading.Event()

    async def slow() -> str:
        return await client.driver.elsewhere(lambda: "released" if release.wait(LIMIT_S) else "stuck")

    thread, outcome = in_thread(lambda: client.run(slow()))
    assert client.run(number()) == 1
    release.set()
    thread.join(LIMIT_S)
    assert outcome == ["released"]


def test_slow_work_that_fails_fails_there(client: Client) -> None:
    async def failing() -> None:
        await client.driver.elsewhere(lambda: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        client.run(failing())


def test_a_callback_cannot_wait_for_its_own_thread(client: Client) -> None:
    async def inside() -> None:
        client.driver.run(number())

    with pytest.raises(ClientError, match="callback"):
        client.run(inside())


def test_closing_tells_who_waits_and_ends_the_thread(broker: Broker) -> None:
    before = threading.enumerate()
    client = Client(broker)
    entered = threading.Event()

    async def wait() -> None:
        entered.set()
        await Pending[None]()

    thread, outcome = in_thread(lambda: client.run(wait(), None))
    assert entered.wait(LIMIT_S)
    client.close()
    thread.join(LIMIT_S)
    assert isinstance(outcome[0], ClosedError)
    assert not new_threads(before)
    with pytest.raises(ClosedError):
        client.run(number())
    client.driver.close()


def test_closing_from_within_ends_the_thread_after_its_turn(broker: Broker) -> None:
    client = Client(broker)
    client.run(client.cluster.brokers())
    [thread] = [each for each in threading.enumerate() if each is client.driver._thread]

    async def close() -> None:
        client.network.close()
        client.driver.close()

    with contextlib.suppress(ClosedError):
        client.run(close())
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    with pytest.raises(ClosedError):
        client.run(number())


def test_a_driver_that_was_never_used_has_no_thread(broker: Broker) -> None:
    before = threading.enumerate()
    client = Client(broker)
    assert not new_threads(before)
    client.driver.close()
    with pytest.raises(ClosedError):
        client.run(number())


def test_a_failure_of_the_thread_is_told_to_everybody(client: Client) -> None:
    async def break_it() -> None:
        client.driver.call_soon(lambda: 1 // 0)
        await Pending[None]()

    with pytest.raises(ClientError, match="ZeroDivisionError"):
        client.run(break_it())
    with pytest.raises(ClientError, match="ZeroDivisionError"):
        client.run(number())


def test_a_forked_process_is_told_to_make_its_own_and_harms_nobody(client: Client) -> None:
    client.run(client.cluster.brokers())
    assert client.driver.open_sockets
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        code = 1
        try:
            client.driver.run(number())
        except ClientError as error:
            code = 0 if "fork" in str(error) else 2
        client.network.close()
        client.driver.close()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.run(client.cluster.brokers()), "the connections of the parent are as they were"


PROGRAM = """
import sys
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.driver import sleep
from lowwater.client.flow import Flow
from lowwater.client.network import Network
from lowwater.client.threaded import ThreadedDriver

config = ClientConfig({"bootstrap.servers": sys.argv[1]})
driver = ThreadedDriver(config)
cluster = Cluster(Network(config, driver))

async def busy():
    while True:
        await cluster.brokers()

async def begin():
    Flow(busy())
    await cluster.brokers()

driver.run(begin())
print("at work")
"""


def test_a_program_that_ends_without_closing_ends_at_once_and_quietly(broker: Broker) -> None:
    ended = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-c", PROGRAM, broker.bootstrap],
        capture_output=True,
        text=True,
        timeout=LIMIT_S * 2,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "at work\n", "")


def test_nothing_is_left_behind(broker: Broker) -> None:
    before, sockets = threading.enumerate(), open_sockets()
    for _ in range(5):
        client = Client(broker)
        client.run(client.cluster.brokers())
        client.close()
    assert not new_threads(before)
    assert come_down_to(sockets)
