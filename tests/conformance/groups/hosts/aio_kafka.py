"""A member by aiokafka: the same commands, on an event loop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import threading
from typing import Any

import aiokafka
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import BrokerResponseError, KafkaError, NoOffsetForPartitionError
from tests.conformance.groups.hosts.serving import POLL_S, emit, failed, polled, told

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
FENCED_INSTANCE_ID = 82


class Teller(aiokafka.ConsumerRebalanceListener):
    async def on_partitions_assigned(self, assigned: Any) -> None:
        told("assigned", assigned)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        told("revoked", revoked)


class AioKafka:
    def __init__(self) -> None:
        self.consumer: Any = None
        self.starting: asyncio.Task[None]

    async def join(self, how: dict[str, Any]) -> None:
        self.consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=how["bootstrap"],
            group_id=how["group"],
            client_id=how["client_id"],
            group_instance_id=how["instance"],
            auto_offset_reset=how["reset"],
            enable_auto_commit=how["auto_commit_ms"] is not None,
            auto_commit_interval_ms=how["auto_commit_ms"] or 5000,
            session_timeout_ms=how["session_timeout_ms"],
            heartbeat_interval_ms=how["heartbeat_ms"],
            max_poll_interval_ms=how["rebalance_timeout_ms"],
            metadata_max_age_ms=how["metadata_age_ms"],
            partition_assignment_strategy=[ASSIGNORS[how["assignor"]]],
            fetch_max_wait_ms=50,
        )
        if how["pattern"]:
            self.consumer.subscribe(pattern=how["pattern"], listener=Teller())
        else:
            self.consumer.subscribe(how["topics"], listener=Teller())
        # It returns with the first assignment; a test may have to do something for that.
        self.starting = asyncio.create_task(self.consumer.start())

    async def poll(self) -> bool:
        """Whether to poll again."""
        if not self.starting.done():
            await asyncio.wait([self.starting], timeout=POLL_S)
            return True
        try:
            self.starting.result()
            came = await self.consumer.getmany(timeout_ms=int(POLL_S * 1000))
        except KafkaError as error:
            return self._judge(error)
        for place, messages in came.items():
            polled(place.topic, place.partition, [message.offset for message in messages])
        return True

    @staticmethod
    def _judge(error: KafkaError) -> bool:
        if code_of(error) == FENCED_INSTANCE_ID or isinstance(error, NoOffsetForPartitionError):
            failed(code_of(error), repr(error))
            return False
        emit(event="noted", code=code_of(error), detail=repr(error))
        return True

    async def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        if offsets is None:
            await self.consumer.commit()
            return
        await self.consumer.commit(
            {aiokafka.TopicPartition(topic, partition): offset for topic, partition, offset in offsets}
        )

    async def committed(self, places: list[tuple[str, int]]) -> list[int | None]:
        return [await self.consumer.committed(aiokafka.TopicPartition(*place)) for place in places]

    async def seek(self, topic: str, partition: int, offset: int) -> None:
        self.consumer.seek(aiokafka.TopicPartition(topic, partition), offset)

    async def close(self) -> None:
        await self.consumer.stop()


def code_of(error: Exception) -> int:
    return error.errno if isinstance(error, BrokerResponseError) else -1


async def serve() -> None:
    hosted, commands, polling = AioKafka(), asyncio.Queue[dict[str, Any] | None](), False
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(loop, commands), daemon=True).start()
    while True:
        if polling and commands.empty():
            polling = await hosted.poll()
            continue
        command = await commands.get()
        if command is None:
            os._exit(0)
        call = command.pop("call")
        if call in ("hold", "go_on"):
            polling = call == "go_on"
            emit(answer=command["id"], result=None)
            continue
        await _perform(hosted, call, command)
        polling = call == "join" or polling
        if call == "close":
            os._exit(0)


def _read(loop: asyncio.AbstractEventLoop, commands: asyncio.Queue[dict[str, Any] | None]) -> None:
    for line in sys.stdin:
        loop.call_soon_threadsafe(commands.put_nowait, json.loads(line))
    loop.call_soon_threadsafe(commands.put_nowait, None)


async def _perform(hosted: AioKafka, call: str, command: dict[str, Any]) -> None:
    number = command.pop("id")
    command.pop("member")
    try:
        emit(answer=number, result=await getattr(hosted, call)(**command))
    except Exception as error:
        emit(answer=number, error=code_of(error), detail=repr(error))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    asyncio.run(serve())
