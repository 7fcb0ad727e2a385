"""Decoding and encoding messages, beside kio and kafka-python in the same run: `python -m bench.codec`.

Each figure is one decode and one encode of the same message; "by reference" leaves the records where they are.
"""

import gc
import importlib
import io
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from lowwater.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from lowwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from lowwater.wire.schema import Int32, String, decoder, encoder, message, parts_encoder, since

ROUNDS = 7
ROUND_SECONDS = 0.2
CHUNK_SECONDS = 0.003
RoundTrip = Callable[[], object]


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatRequest:
    """The smallest request that is sent often."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = since(3)


class Workload(NamedTuple):
    title: str
    sample: Any
    version: int
    folder: str  # where kafka-python keeps it


def workloads() -> list[Workload]:
    return [
        Workload("Heartbeat", heartbeat(), 4, "consumer"),
        Workload("Metadata, 100 topics x 10 partitions", metadata(), 12, "metadata"),
        Workload("Produce, 16 KB", produce(16 << 10), 9, "producer"),
        Workload("Produce, 1 MB", produce(1 << 20), 9, "producer"),
    ]


def heartbeat() -> HeartbeatRequest:
    member = "consumer-1-3f6d2c1e-6a3b-4a52-a4a0-0d8cf4a7f5f7"
    return HeartbeatRequest(group_id="orders-readers", generation_id=7, member_id=member)


def metadata() -> MetadataResponse:
    partitions = [
        MetadataResponsePartition(
            partition_index=index, leader_id=1, leader_epoch=3, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for index in range(10)
    ]
    topics = [
        MetadataResponseTopic(name=f"topic-{each}", topic_id=bytes([each]) * 16, partitions=partitions)
        for each in range(100)
    ]
    brokers = [MetadataResponseBroker(node_id=each, host=f"broker-{each}", port=9092) for each in (1, 2, 3)]
    return MetadataResponse(brokers=brokers, cluster_id="lowwater", controller_id=1, topics=topics)


def produce(size: int) -> ProduceRequest:
    data = PartitionProduceData(index=3, records=memoryview(bytes(size)))
    topic = TopicProduceData(name="orders", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


def round_trips(work: Workload) -> dict[str, RoundTrip]:
    """Ways to read and write the same bytes, by name."""
    cls = type(work.sample)
    data = encoder(cls, work.version)(work.sample)
    decode, encode, parts = (make(cls, work.version) for make in (decoder, encoder, parts_encoder))
    view = memoryview(data)
    ways: dict[str, RoundTrip] = {"lowwater": lambda: encode(decode(view))}
    if "Produce" in work.title:
        ways["lowwater, by reference"] = lambda: parts(decode(view))
    ways |= {"kio": kio(cls.__name__, work.version, data), "kafka-python": kafka_python(work, data)}
    for name, way in ways.items():
        written = way()
        assert (b"".join(written) if isinstance(written, list) else written) == data, name
    return ways


def kio(name: str, version: int, data: bytes) -> RoundTrip:
    from kio.serial import entity_reader, entity_writer

    kind = "request" if name.endswith("Request") else "response"
    folder = name.removesuffix(kind.capitalize()).lower()
    theirs = getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.{kind}"), name)
    read, write = entity_reader(theirs), entity_writer(theirs)

    def round_trip() -> bytes:
        out = io.BytesIO()
        write(out, read(data, 0)[0])
        return out.getvalue()

    return round_trip


def kafka_python(work: Workload, data: bytes) -> RoundTrip:
    theirs = getattr(importlib.import_module(f"kafka.protocol.{work.folder}"), type(work.sample).__name__)

    def round_trip() -> Any:
        read = theirs.decode(data, version=work.version)
        read._header = None
        return read.encode(version=work.version)

    return round_trip


def chunk_of(way: RoundTrip) -> int:
    """So many round trips that one chunk takes a few milliseconds."""
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < CHUNK_SECONDS:
        way()
        count += 1
    return count


def fastest_chunk(way: RoundTrip, count: int, seconds: float) -> float:
    """Round trips in a second, in the least disturbed chunk."""
    best, end = 0.0, time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        for _ in range(count):
            way()
        best = max(best, count / (time.perf_counter() - started))
    return best


def main() -> None:
    print(f"{'decode + encode, a second':<40}{'rate':>12}{'ratio':>8}   (ours by theirs, best of {ROUNDS})")
    for work in workloads():
        ways = round_trips(work)
        gc.freeze()  # the modules of three libraries are not what is measured
        chunks = {name: chunk_of(way) for name, way in ways.items()}
        best = dict.fromkeys(ways, 0.0)
        for _ in range(ROUNDS):
            # Taking turns: what else the machine does meets all of them.
            for name, way in ways.items():
                best[name] = max(best[name], fastest_chunk(way, chunks[name], ROUND_SECONDS))
        for name, figure in best.items():
            ratio = f"{best['lowwater'] / figure:8.1f}" if "lowwater" not in name else ""
            print(f"{work.title + ': ' + name:<40}{figure:>12,.0f}{ratio}")


if __name__ == "__main__":
    main()
