"""Both drivers against a real broker that drops connections, dawdles, errs and goes away."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.client.drivers import DRIVERS, LIMIT_MS, come_down_to, open_sockets

from lowwater.client.aio import AioDriver
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError, ClosedError, ConnectError, DisconnectedError, RequestTimeoutError
from lowwater.client.network import USUAL, Network
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.testing import Broker
from lowwater.types import TopicPartition
from lowwater.wire.messages import FetchRequest, HeartbeatRequest, ListOffsetsRequest
from lowwater.wire.messages.fetch import FetchPartition, FetchTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
NODE = 1
ROWS = 20_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker() as broker:
        broker.fill("t", 0, next=ROWS)
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Iterator[Broker]:
    yield shared
    shared.faults.clear()


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def drive(request: pytest.FixtureRequest) -> Iterator[Callable[..., list[Any]]]:
    before = open_sockets()
    yield request.param
    assert come_down_to(before), "every socket is closed again"


def at(broker: Broker, **settings: Any) -> dict[str, Any]:
    return {"bootstrap.servers": broker.bootstrap} | {k.replace("_", "."): v for k, v in settings.items()}


async def find(cluster: Cluster) -> int:
    (node,) = await cluster.leaders([TopicPartition("t", 0)])
    return node


async def log_end(cluster: Cluster) -> int:
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    answer = await cluster.network.ask(await find(cluster), request)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


async def fetch(cluster: Cluster, max_bytes: int = 1 << 24) -> bytes:
    node = await find(cluster)
    known = cluster.known("t")
    assert known is not None
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic="t", topic_id=known.id, partitions=[partition])]
    held = await cluster.network.ask(node, FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics))
    records = bytes(held.response.responses[0].partitions[0].records)
    held.release()
    return records


def test_a_flow_is_the_same_with_every_driver(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    assert drive(at(broker), log_end, log_end) == [ROWS, ROWS]


def test_large_answers_come_whole(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    whole, again, small = drive(at(broker), fetch, fetch, lambda cluster: fetch(cluster, 1_000))
    assert len(whole) > 500_000
    assert whole == again
    assert whole.startswith(small)


def test_many_large_answers_to_many_requests_at_once(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    async def flood(cluster: Cluster) -> list[int]:
        node = await find(cluster)
        known = cluster.known("t")
        assert known is not None
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 24)
        topics = [FetchTopic(topic="t", topic_id=known.id, partitions=[partition])]
        request = FetchRequest(max_wait_ms=100, min_bytes=1, topics=topics)
        asked = [cluster.network.ask(node, request) for _ in range(20)]
        return [len((await one).response.responses[0].partitions[0].records) for one in asked]

    (sizes,) = drive(at(broker), flood)
    assert len(set(sizes)) == 1
    assert sizes[0] > 500_000


def test_a_dropped_connection_is_an_error_and_the_next_request_opens_another(
    broker: Broker, drive: Callable[..., list[Any]]
) -> None:
    async def twice(cluster: Cluster) -> int:
        node = await find(cluster)
        with pytest.raises(DisconnectedError, match="before the answer to Heartbeat came"):
            await cluster.network.ask(node, BEAT)
        return int((await cluster.network.ask(node, BEAT)).error_code)

    broker.faults.drop("Heartbeat")
    assert drive(at(broker), twice) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_metadata_is_asked_for_until_it_comes(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    broker.faults.drop("Metadata", times=2)
    broker.faults.fail("Metadata", ErrorCode.LEADER_NOT_AVAILABLE, times=2)
    assert drive(at(broker), find) == [NODE]
    assert broker.faults.left("Metadata") == 0


def test_a_broker_that_drops_the_first_question_is_asked_again(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    broker.faults.drop("ApiVersions", times=2)
    assert drive(at(broker), find) == [NODE]


def test_an_answer_that_comes_too_late_is_a_timeout_and_a_new_connection(
    broker: Broker, drive: Callable[..., list[Any]]
) -> None:
    async def late(cluster: Cluster) -> int:
        node = await find(cluster)
        with pytest.raises(RequestTimeoutError, match=r"no answer to Heartbeat from .* in 0\.4 s"):
            await cluster.network.ask(node, BEAT)
        return int((await cluster.network.ask(node, BEAT)).error_code)

    broker.faults.delay("Heartbeat", 20_000)
    assert drive(at(broker, request_timeout_ms=400), late) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_slow_answer_is_waited_for(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    broker.faults.delay("ListOffsets", 150)
    assert drive(at(broker), log_end) == [ROWS]


def test_a_call_that_is_given_up_leaves_the_connection_usable(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    async def given_up(cluster: Cluster) -> int:
        node = await find(cluster)
        slow = cluster.network.ask(node, BEAT)
        slow.abandon()
        return await log_end(cluster)

    broker.faults.delay("Heartbeat", 50)
    assert drive(at(broker), given_up) == [ROWS]


def test_bootstrap_servers_that_are_not_there_are_passed_over(broker: Broker, drive: Callable[..., list[Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed_port = taken.getsockname()[1]
    assert drive(at(broker, bootstrap_servers=f"127.0.0.1:{closed_port},{broker.bootstrap}"), find) == [NODE]


def test_no_broker_at_all_is_an_error_that_says_where_it_was_looked_for(drive: Callable[..., list[Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": 1_000}
    with pytest.raises(ConnectError, match=rf"127\.0\.0\.1:{port} refuses connections; .*tried \d+ times"):
        drive(settings, find)


def test_a_name_that_no_one_knows_is_an_error_in_words(drive: Callable[..., list[Any]]) -> None:
    settings = {"bootstrap.servers": "no-such-host.invalid:9092", "default.api.timeout.ms": 100}
    with pytest.raises(ConnectError, match="the host name cannot be resolved"):
        drive(settings, find)


def test_a_port_that_speaks_something_else_is_an_error_in_words(drive: Callable[..., list[Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        settings = {"bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}"}
        with pytest.raises(ClientError, match=r"is security\.protocol=PLAINTEXT right for this port\?"):
            drive(settings, find)
        thread.join()


def test_a_port_that_never_answers_is_given_up(drive: Callable[..., list[Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = {
            "bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}",
            "socket.connection.setup.timeout.ms": 150,
            "default.api.timeout.ms": 300,
        }
        with pytest.raises(ConnectError, match=r"did not let us in within 0\.15 s"):
            drive(settings, find)


def test_a_broker_that_was_restarted_is_found_again(drive: Callable[..., list[Any]]) -> None:
    with Broker() as broker:
        broker.fill("t", 0, next=10)

        async def around_a_restart(cluster: Cluster) -> list[int]:
            before = await log_end(cluster)
            broker.restart()
            return [before, await cluster.retry.run(lambda _: log_end(cluster))]

        assert drive(at(broker), around_a_restart) == [[10, 10]]


# ---- the blocking driver's own


@pytest.fixture
def client(broker: Broker) -> Iterator[tuple[BlockingDriver, Cluster]]:
    config = ClientConfig(at(broker))
    driver = BlockingDriver(config)
    network = Network(config, driver)
    yield driver, Cluster(network)
    network.close()
    driver.close()


def test_ctrl_c_ends_a_call_and_leaves_the_client_usable(
    broker: Broker, client: tuple[BlockingDriver, Cluster]
) -> None:
    driver, cluster = client
    assert driver.run(log_end(cluster)) == ROWS
    for lane in ("first", "second", "third"):
        broker.faults.delay("Heartbeat", 20_000)
        arrived = broker.requests().get("Heartbeat", 0)

        def interrupt(arrived: int = arrived) -> None:
            while broker.requests().get("Heartbeat", 0) == arrived:
                pass
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            driver.run(_beat(cluster, lane))
        thread.join()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert driver.run(log_end(cluster)) == ROWS
    assert driver.open_sockets == 1 + 3


async def _beat(cluster: Cluster, lane: str = USUAL) -> Any:
    return await cluster.network.ask(await find(cluster), BEAT, lane=lane)


def test_a_handler_of_the_program_for_ctrl_c_stays_in_place(client: tuple[BlockingDriver, Cluster]) -> None:
    driver, cluster = client
    heard: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        os.kill(os.getpid(), signal.SIGINT)
        driver.run(log_end(cluster))
    finally:
        signal.signal(signal.SIGINT, previous)
    assert heard == [signal.SIGINT]


def test_a_call_has_a_time_limit(broker: Broker, client: tuple[BlockingDriver, Cluster]) -> None:
    driver, cluster = client
    broker.faults.delay("ListOffsets", 500)
    with pytest.raises(RequestTimeoutError, match=r"not done within 0\.05 s"):
        driver.run(log_end(cluster), timeout_ms=50)
    assert driver.run(log_end(cluster)) == ROWS


def test_waiting_goes_on_with_the_next_call(broker: Broker, client: tuple[BlockingDriver, Cluster]) -> None:
    driver, cluster = client
    driver.run(find(cluster))
    broker.faults.delay("Heartbeat", 1_000)
    answer = cluster.network.ask(NODE, BEAT)
    assert driver.wait(answer, timeout_ms=1) is False
    assert driver.wait(answer, timeout_ms=LIMIT_MS) is True
    assert answer.result().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_client_is_for_one_call_at_a_time(client: tuple[BlockingDriver, Cluster]) -> None:
    driver, cluster = client

    async def nested() -> None:
        with pytest.raises(ClientError, match="in use by this thread, in a callback"):
            driver.run(find(cluster))

    driver.run(nested())


def test_a_client_is_for_one_thread_at_a_time(client: tuple[BlockingDriver, Cluster]) -> None:
    driver, cluster = client
    done: Pending[None] = Pending()
    failures: list[ClientError] = []

    def intrude() -> None:
        try:
            driver.run(find(cluster))
        except ClientError as error:
            failures.append(error)

    async def outer() -> None:
        thread = threading.Thread(target=intrude)
        thread.start()
        thread.join()
        done.resolve(None)

    driver.run(outer())
    assert "another thread" in str(failures[0])


def test_a_closed_client_says_so(broker: Broker) -> None:
    config = ClientConfig(at(broker))
    driver = BlockingDriver(config)
    network = Network(config, driver)
    driver.run(find(Cluster(network)))
    network.close()
    driver.close()
    driver.close()
    with pytest.raises(ClosedError):
        driver.run(find(Cluster(network)))


# ---- the asyncio driver's own


def test_a_cancelled_task_gives_its_call_up(broker: Broker) -> None:
    async def main() -> int:
        config = ClientConfig(at(broker))
        driver = AioDriver(config)
        cluster = Cluster(Network(config, driver))
        await driver.run(find(cluster))
        broker.faults.delay("Heartbeat", 300)
        task = asyncio.create_task(driver.run(_beat(cluster)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        end = await driver.run(log_end(cluster))
        cluster.network.close()
        await driver.close()
        return end

    assert asyncio.run(main()) == ROWS


def test_many_calls_share_one_connection(broker: Broker) -> None:
    async def main() -> tuple[list[int], int]:
        config = ClientConfig(at(broker))
        driver = AioDriver(config)
        cluster = Cluster(Network(config, driver))
        ends = await asyncio.gather(*(driver.run(log_end(cluster)) for _ in range(50)))
        count = driver.open_sockets
        cluster.network.close()
        await driver.close()
        return ends, count

    ends, count = asyncio.run(main())
    assert ends == [ROWS] * 50
    assert count == 1


def test_a_slow_token_function_does_not_hold_up_the_loop() -> None:
    entered, release = threading.Event(), threading.Event()

    async def main() -> None:
        driver = AioDriver(ClientConfig({"bootstrap.servers": "x:1"}))
        slow = driver.elsewhere(lambda: (entered.set(), release.wait(10)))
        while not entered.is_set():  # noqa: ASYNC110  the thread is to be seen running while the loop turns
            await asyncio.sleep(0)
        assert not slow.done
        release.set()
        assert await driver.wait(slow)
        await driver.close()

    asyncio.run(main())


def test_closing_while_connecting_leaks_nothing(broker: Broker) -> None:
    before = open_sockets()

    async def main(turns: int) -> None:
        config = ClientConfig(at(broker))
        driver = AioDriver(config)
        network = Network(config, driver)
        asked = network.ask_any(BEAT)
        for _ in range(turns):
            await asyncio.sleep(0)
        network.close()
        await driver.close()
        assert asked.done
        assert driver.open_sockets == 0

    for turns in range(12):
        asyncio.run(main(turns))
    assert come_down_to(before)


def test_a_blocking_client_that_is_closed_while_connecting_leaks_nothing(broker: Broker) -> None:
    before = open_sockets()
    for turns in range(8):
        config = ClientConfig(at(broker))
        driver = BlockingDriver(config)
        network = Network(config, driver)
        asked = network.ask_any(BEAT)
        for _ in range(turns):
            driver.wait(asked, timeout_ms=0)
        network.close()
        driver.close()
        assert asked.done
    assert come_down_to(before)


def test_a_first_answer_comes_quickly(broker: Broker) -> None:
    config = ClientConfig(at(broker))
    began = time.monotonic()
    driver = BlockingDriver(config)
    network = Network(config, driver)
    driver.run(log_end(Cluster(network)))
    network.close()
    driver.close()
    assert time.monotonic() - began < 5
