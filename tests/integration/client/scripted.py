"""A broker on a real socket that serves one topic of two partitions, whatever bytes a test puts into them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lowwater.wire.frame import decode_request_header, response_lead
from lowwater.wire.messages import API, ApiVersionsResponse, FetchResponse, ListOffsetsResponse, MetadataResponse
from lowwater.wire.messages.api_versions import ApiVersion
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from lowwater.wire.messages.metadata import MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic
from lowwater.wire.schema import decoder, encoder

TOPIC = "hostile"
HOST = "127.0.0.1"
LATEST = -1
VERSIONS = {1: (4, 12), 2: (1, 7), 3: (1, 9), 18: (0, 3)}
Frame = Callable[[bytes], bytes]


class Scripted:
    """`records`: by partition, what a Fetch from its beginning brings. `ends`: where partitions claim to end."""

    def __init__(self, records: Mapping[int, bytes], ends: Mapping[int, int], spoil: Frame = bytes) -> None:
        self._records = records
        self._ends = ends
        self._spoil = spoil
        self._server = socket.create_server((HOST, 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            try:
                while size := received.read(4):
                    self._answer(connection, memoryview(received.read(int.from_bytes(size, "big"))))
            except OSError:
                return

    def _answer(self, connection: socket.socket, frame: memoryview) -> None:
        key, version, correlation_id, _, at = decode_request_header(frame)
        api = API[key]
        response = getattr(self, f"_{api.name}")(decoder(api.request, version)(frame[at:]))
        body = encoder(api.response, version)(response)
        lead = response_lead(key, version)
        answer = lead.pack(lead.size - 4 + len(body), correlation_id) + body
        connection.sendall(self._spoil(answer) if api.name == "Fetch" else answer)

    def _ApiVersions(self, _: Any) -> ApiVersionsResponse:  # noqa: N802
        known = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in VERSIONS.items()]
        return ApiVersionsResponse(api_keys=known)

    def _Metadata(self, _: Any) -> MetadataResponse:  # noqa: N802
        partitions = [
            MetadataResponsePartition(partition_index=one, leader_id=1, replica_nodes=[1], isr_nodes=[1])
            for one in self._ends
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=HOST, port=self.port)],
            topics=[MetadataResponseTopic(name=TOPIC, partitions=partitions)],
        )

    def _ListOffsets(self, request: Any) -> ListOffsetsResponse:  # noqa: N802
        found = [
            ListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                offset=self._ends[each.partition_index] if each.timestamp == LATEST else 0,
            )
            for topic in request.topics
            for each in topic.partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=found)])

    def _Fetch(self, request: Any) -> FetchResponse:  # noqa: N802
        asked = [each for topic in request.topics for each in topic.partitions]
        data = [
            PartitionData(
                partition_index=each.partition,
                high_watermark=self._ends[each.partition],
                last_stable_offset=self._ends[each.partition],
                log_start_offset=0,
                records=self._records[each.partition] if each.fetch_offset < self._ends[each.partition] else b"",
            )
            for each in asked
        ]
        return FetchResponse(responses=[FetchableTopicResponse(topic=TOPIC, partitions=data)])


@contextmanager
def scripted(records: Mapping[int, bytes], ends: Mapping[int, int], spoil: Frame = bytes) -> Iterator[Scripted]:
    broker = Scripted(records, ends, spoil)
    try:
        yield broker
    finally:
        broker.close()
