"""Connections of a broker in this process, where a test can look inside and hold an fsync back."""

from __future__ import annotations

import socket
import struct
import threading

import pytest
from tests.crash.plain_client import PRODUCE_VERSION, connect, create_topic, produce, produce_request
from tests.crash.test_connections import eventually, frame_of, parked_fetch

from lowwater.ports import File
from lowwater.system import SystemDisk
from lowwater.testing import Broker
from lowwater.wire.messages import ApiVersionsRequest, ListOffsetsRequest
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

DEADLINE_S = 30
LATEST = -1


class HeldSyncs(SystemDisk):
    """Syncs of record files wait while `held`."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()

    def sync_files(self, files: list[File]) -> None:
        assert self.free.wait(DEADLINE_S)
        super().sync_files(files)


def waiting_fetches(broker: Broker, topic: str) -> int:
    return broker.call(lambda: len(broker.node.broker.partition(topic, 0).waiting_fetches))


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("behind", [b"", b"x" * 100], ids=["nothing behind it", "bytes behind it"])
def test_a_client_that_goes_while_its_fetch_is_parked_leaves_nothing_behind(reset: bool, behind: bytes) -> None:
    with Broker() as broker:
        with connect(broker.bootstrap) as wire:
            create_topic(wire, "orders")
        clients = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(20)]
        for client in clients:
            client.sendall(frame_of(parked_fetch("orders", 0), 12) + behind)
        eventually(lambda: waiting_fetches(broker, "orders") == 20, "not every fetch was parked")
        for client in clients:
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        eventually(lambda: waiting_fetches(broker, "orders") == 0, "fetches of clients that are gone were kept")
        eventually(lambda: broker.call(lambda: broker.node._listener.connection_count) == 0, "connections were kept")
        with connect(broker.bootstrap) as wire:
            assert produce(wire, "orders", b"x") == (0, 0)


def log_end(broker: Broker, topic: str) -> int:
    with connect(broker.bootstrap) as wire:
        asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
        answer = wire.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])]), 5)
    return int(answer.topics[0].partitions[0].offset)


def test_requests_behind_a_produce_that_waits_for_its_fsync_are_served_and_answered_in_order() -> None:
    disk = HeldSyncs()
    with Broker(disk=disk) as broker, connect(broker.bootstrap) as wire:
        create_topic(wire, "orders")
        disk.free.clear()
        first = wire.send(produce_request("orders", b"first"), PRODUCE_VERSION)
        second = wire.send(produce_request("orders", b"second"), PRODUCE_VERSION)
        written = wire.send(produce_request("orders", b"third", acks=1), PRODUCE_VERSION)
        versions = wire.send(ApiVersionsRequest(), 0)
        eventually(lambda: log_end(broker, "orders") == 3, "a Produce was held up by the fsync of another one")
        wire.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            wire.socket.recv(1)
        wire.socket.settimeout(DEADLINE_S)
        disk.free.set()
        for offset, correlation_id in enumerate((first, second, written)):
            answer = wire.receive(0, PRODUCE_VERSION, correlation_id).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, offset)
        wire.receive(18, 0, versions)
