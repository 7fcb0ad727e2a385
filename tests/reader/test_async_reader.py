"""The same under asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.test_reader import committed, times
from tests.reader.writing import PATIENCE_S, Writer

from lowwater import AsyncConsumerManager, AsyncReader, SourceTopic, TopicPartition
from lowwater.client.errors import ClientError, ClosedError, UnknownTopicError

TopicOf = Callable[..., str]


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))


def test_a_loop_gives_every_row_in_order_and_ends_at_the_stop(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200, 400])

    async def scene() -> None:
        async with AsyncReader(topic, bootstrap=broker.bootstrap, stop="latest", batch_size=3) as reader:
            found = [time async for batch in reader for time in times(batch)]
            assert found == [100, 200, 300, 400]
            assert reader.is_finished
            assert reader.is_live

    run(scene())


def test_it_connects_with_the_first_call(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100])

    async def scene() -> None:
        reader = AsyncReader(topic, bootstrap=broker.bootstrap)
        assert times(await reader.poll(PATIENCE_S * 1000)) == [100]
        assert (await reader.poll(0)).num_rows == 0
        await reader.close()
        with pytest.raises(ClosedError):
            await reader.poll()

    run(scene())


def test_a_first_call_that_is_given_up_leaves_the_beginning_to_the_next(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100], [200])

    async def scene() -> None:
        reader = AsyncReader(topic, bootstrap=broker.bootstrap, stop="latest")
        given_up = asyncio.ensure_future(reader.poll(None))
        await asyncio.sleep(0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await reader.to_table())["timestamp"].cast("int64").to_pylist() == [100, 200]
        await reader.close()

    run(scene())


@pytest.mark.parametrize("is_manager", [False, True])
def test_one_that_is_given_up_while_it_is_entered_is_closed(
    broker: UnderTest, topic_of: TopicOf, is_manager: bool
) -> None:
    topic = topic_of([100])

    async def scene() -> None:
        reader: AsyncReader | AsyncConsumerManager = AsyncReader(topic, bootstrap=broker.bootstrap)
        if is_manager:
            config = {"bootstrap.servers": broker.bootstrap}
            reader = AsyncConsumerManager(config, [SourceTopic.from_earliest(topic)])
        entering = asyncio.ensure_future(reader.__aenter__())
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        with pytest.raises(ClosedError):
            await reader.poll()

    run(scene())


def test_each_call_tells_why_the_beginning_failed(broker: UnderTest) -> None:
    async def scene() -> None:
        reader = AsyncReader("no-such-topic", bootstrap=broker.bootstrap)
        for _ in range(2):
            with pytest.raises(UnknownTopicError, match="no-such-topic"):
                await reader.poll()
        await reader.close()

    run(scene())


def test_two_first_calls_begin_once(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100])

    async def scene() -> None:
        reader = AsyncReader(topic, bootstrap=broker.bootstrap, stop="latest")
        polled, _ = await asyncio.gather(reader.poll(None), reader.seek(topic, 0, 0))
        assert times(polled) == [100]
        await reader.close()

    run(scene())


def test_a_reader_can_be_closed_before_and_while_it_begins(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100])

    async def scene() -> None:
        for calls in range(2):
            reader = AsyncReader(topic, bootstrap=broker.bootstrap)
            waiting = [asyncio.ensure_future(reader.poll(None)) for _ in range(calls)]
            await asyncio.sleep(0)
            await reader.close()
            await reader.close()
            for each in waiting:
                with pytest.raises(ClosedError):
                    await each
            with pytest.raises(ClosedError):
                await reader.poll()

    run(scene())


def test_before_it_has_begun_it_knows_nothing() -> None:
    with pytest.raises(ClientError, match="async with"):
        _ = AsyncReader("orders").positions


def test_a_poll_that_is_cancelled_takes_no_rows_with_it(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([100])

    async def scene() -> None:
        async with AsyncReader(topic, bootstrap=broker.bootstrap) as reader:
            assert times(await reader.poll(PATIENCE_S * 1000)) == [100]
            waiting = asyncio.create_task(reader.poll(None))
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await asyncio.to_thread(writer.write, TopicPartition(topic, 0), [200])
            assert times(await reader.poll(PATIENCE_S * 1000)) == [200]

    run(scene())


def test_a_member_of_a_group_reads_and_commits(broker: UnderTest, writer: Writer, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200])
    group = f"{topic}-group"

    async def scene() -> None:
        async with AsyncReader(topic, bootstrap=broker.bootstrap, group=group) as reader:
            assert times(await reader.to_table()) == [100, 200, 300]
            await reader.commit()
            assert await asyncio.to_thread(committed, writer, group) == {0: 2, 1: 1}
            await reader.seek(topic, 0, "earliest")
            assert times(await reader.poll(PATIENCE_S * 1000)) == [100, 300]

    run(scene())


def test_after_an_exception_the_table_at_which_it_happened_comes_again(
    broker: UnderTest, writer: Writer, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200])
    given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group", "batch_size": 1}

    async def fail_to_load() -> None:
        async with AsyncReader(topic, **given) as reader:
            assert times(await reader.to_table()) == [100, 200]
            raise RuntimeError("the caller fails")

    async def load() -> None:
        async with AsyncReader(topic, **given) as reader:
            assert times(await reader.to_table()) == [100, 200]

    with pytest.raises(RuntimeError):
        run(fail_to_load())
    assert committed(writer, given["group"]) == {}
    run(load())
    assert committed(writer, given["group"]) == {0: 2}


def test_a_table_that_is_given_up_takes_no_rows_with_it(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 200, 300])

    async def scene() -> None:
        given: Any = {"bootstrap": broker.bootstrap, "group": f"{topic}-group", "batch_size": 1}
        async with AsyncReader(topic, **given) as reader:
            gathering = asyncio.create_task(reader.to_table())
            while not reader.stats.rows:  # noqa: ASYNC110 - wherever it is then
                await asyncio.sleep(0)
            gathering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await gathering
            assert times(await reader.to_table()) == [100, 200, 300]

    run(scene())


def test_two_readers_share_one_loop(broker: UnderTest, topic_of: TopicOf) -> None:
    topics = [topic_of([100]), topic_of([200])]

    async def one(topic: str) -> list[int]:
        async with AsyncReader(topic, bootstrap=broker.bootstrap) as reader:
            return times(await reader.to_table())

    async def scene() -> None:
        assert await asyncio.gather(*map(one, topics)) == [[100], [200]]

    run(scene())


def test_a_topic_that_is_not_there_is_an_error_and_leaves_nothing_open(broker: UnderTest) -> None:
    async def scene() -> None:
        config = {"topic.metadata.propagation.max.ms": 0}
        with pytest.raises(UnknownTopicError):
            async with AsyncReader("no-such-topic", bootstrap=broker.bootstrap, config=config):
                pass

    run(scene())


def test_a_manager_polls_until_it_is_live(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 300], [200])

    async def scene() -> None:
        found: list[int] = []
        config = {"bootstrap.servers": broker.bootstrap}
        async with AsyncConsumerManager(config, [SourceTopic.from_earliest(topic)], batch_size=2) as manager:
            while not manager.is_live():
                found += times(await manager.poll(1000))
        assert found == [100, 200, 300]

    run(scene())
