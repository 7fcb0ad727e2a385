"""A member by this package: its Member and its Fetcher, without the columns that a Reader makes of the records."""

from __future__ import annotations

from typing import Any

from tests.conformance.groups.hosts.serving import POLL_S, FatalError, Hosted, emit, polled, serve, told

from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.coordinator import Coordinator
from lowwater.client.driver import sleep
from lowwater.client.errors import BrokerError, ClientError, CommitError
from lowwater.client.fetching.events import Failed, Fetched
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.group import Member
from lowwater.client.group_commits import Committer
from lowwater.client.network import Network
from lowwater.client.offsets import resolve
from lowwater.client.threaded import ThreadedDriver
from lowwater.pending import Pending
from lowwater.positions.grammar import parse_start
from lowwater.positions.plan import UnresolvedError
from lowwater.types import TopicPartition
from lowwater.wire.records import HEADER_SIZE, BatchHeader, read_records

TIMEOUT_MS = 20_000


def settings_of(how: dict[str, Any]) -> dict[str, Any]:
    settings = {
        "bootstrap.servers": how["bootstrap"],
        "group.id": how["group"],
        "client.id": how["client_id"],
        "group.protocol": how["protocol"],
        "max.poll.interval.ms": how["rebalance_timeout_ms"],
        "metadata.max.age.ms": how["metadata_age_ms"],
        "group.instance.id": how["instance"],
        "fetch.wait.max.ms": 50,
        "auto.offset.reset": {"none": "error"}.get(how["reset"], how["reset"]),
    }
    if how["protocol"] == "classic":
        settings["session.timeout.ms"] = how["session_timeout_ms"]
        settings["heartbeat.interval.ms"] = how["heartbeat_ms"]
        settings["partition.assignment.strategy"] = how["assignor"]
    elif how["assignor"] is not None:
        settings["group.remote.assignor"] = how["assignor"]
    return settings


class Lowwater(Hosted):
    def join(self, how: dict[str, Any]) -> None:
        config = ClientConfig(settings_of(how))
        self.driver = ThreadedDriver(config)
        self.start = "stored" if how["reset"] == "none" else f"stored|{how['reset']}"
        self.driver.run(self._join(Cluster(Network(config, self.driver)), how), TIMEOUT_MS)

    async def _join(self, cluster: Cluster, how: dict[str, Any]) -> None:
        self.cluster = cluster
        self.coordinator = Coordinator(cluster, how["group"])
        self.fetcher = Fetcher(cluster)
        self.member = Member(self.coordinator, self, topics=how["topics"], pattern=how["pattern"])
        self.committer = Committer(self.member.commit, self.driver, interval_ms=how["auto_commit_ms"])
        self.next: dict[TopicPartition, int] = {}
        self.trouble: ClientError | UnresolvedError | None = None
        self.member.start()

    # ---- what the member tells

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        told("assigned", partitions)
        wishes = dict.fromkeys(partitions, parse_start(self.start))
        try:
            found = await resolve(
                self.cluster, wishes, now_ms=self.driver.now_ms(), committed=self.coordinator.committed
            )
        except (ClientError, UnresolvedError) as error:
            self.trouble = error
            return
        self.fetcher.add(found.starts)

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        await self.committer.give_up(partitions)
        self._drop(partitions)
        told("revoked", partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self.committer.forget(partitions)
        self._drop(partitions)
        told("lost", partitions)

    def _drop(self, partitions: list[TopicPartition]) -> None:
        self.fetcher.remove([one for one in partitions if one in self.fetcher])
        for one in partitions:
            self.next.pop(one, None)

    def failed(self, error: ClientError) -> None:
        self.trouble = error

    # ---- what the test asks

    def poll(self) -> None:
        self.driver.run(self._poll(), TIMEOUT_MS)

    async def _poll(self) -> None:
        await self.member.enter_poll()
        self.committer.done(self.next)
        try:
            await self._wait_or(POLL_S * 1000)
            for fetched in self.fetcher.take():
                self._tell(fetched)
        finally:
            self.member.exit_poll()
        if self.trouble is not None:
            raise FatalError(self.code_of(self.trouble), self.trouble)

    async def _wait_or(self, limit_ms: float) -> None:
        either: Pending[None] = Pending()
        for each in (self.fetcher.fetched(), sleep(self.driver, limit_ms)):
            each.on_done(lambda _: None if either.done else either.resolve(None))
        await either

    def _tell(self, fetched: Fetched) -> None:
        for piece in fetched.slices:
            offsets = [offset for offset in _offsets(piece.records) if offset >= piece.fetch_offset]
            if offsets:
                self.next[piece.partition] = offsets[-1] + 1
                polled(*piece.partition, offsets)
        fetched.release()
        for event in fetched.events:
            if isinstance(event, Failed):
                emit(event="noted", code=self.code_of(event.error), detail=str(event.error))

    def commit(self, offsets: list[tuple[str, int, int]] | None) -> None:
        wanted = {TopicPartition(topic, number): offset for topic, number, offset in offsets or ()} or dict(self.next)
        self.driver.run(self.member.commit(wanted), TIMEOUT_MS)

    def committed(self, places: list[tuple[str, int]]) -> list[int | None]:
        wanted = [TopicPartition(*place) for place in places]
        return list(self.driver.run(self.coordinator.committed(wanted), TIMEOUT_MS).values())

    def seek(self, topic: str, partition: int, offset: int) -> None:
        async def seek() -> None:
            self.fetcher.seek(TopicPartition(topic, partition), offset)

        self.driver.run(seek(), TIMEOUT_MS)

    def close(self) -> None:
        async def close() -> None:
            self.committer.done(self.next)
            await self.member.close()
            await self.fetcher.aclose()
            self.cluster.network.close()

        self.driver.run(close(), TIMEOUT_MS)
        self.driver.close()

    def code_of(self, error: Exception) -> int:
        if isinstance(error, CommitError):
            return self.code_of(next(iter(error.errors.values())))
        return error.code if isinstance(error, BrokerError) else -1


def _offsets(records: memoryview) -> list[int]:
    """Of all whole batches."""
    offsets: list[int] = []
    while len(records) >= HEADER_SIZE and (size := BatchHeader.parse(records).size) <= len(records):
        offsets += [record.offset for record in read_records(records[:size])]
        records = records[size:]
    return offsets


if __name__ == "__main__":
    serve(Lowwater())
