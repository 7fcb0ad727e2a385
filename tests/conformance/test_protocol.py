"""Frames, versions, ApiVersions and Metadata, byte by byte over a plain socket; both brokers answer alike."""

from __future__ import annotations

import struct

import pytest
from tests.conformance.asking import UNKNOWN_ID, eventually, metadata, names, topic_id
from tests.conformance.conftest import NewTopic
from tests.conformance.raw import ConnectionEndedError, Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.frame import encode_request_header
from lowwater.wire.messages import API, ApiVersionsRequest, ApiVersionsResponse, MetadataRequest
from lowwater.wire.messages.metadata import MetadataRequestTopic
from lowwater.wire.schema import decoder

NOT_ASKED = -2147483648

# What Apache Kafka 4.3 advertises for the APIs that this broker serves.
ADVERTISED = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    32: (1, 4),
    33: (0, 2),
    35: (1, 5),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    47: (0, 0),
    48: (0, 1),
    49: (0, 1),
    55: (0, 2),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    74: (0, 1),
    75: (0, 0),
}


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_what_is_served(wire: Wire, version: int, broker: UnderTest) -> None:
    request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
    answer = wire.ask(request, version)
    assert answer.error_code == 0
    advertised = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    if broker.name == "lowwater":
        # Older simple consumers still look up offsets by segment: docs/differences.md.
        assert advertised.pop(2) == (0, 11)
        assert advertised.items() <= ADVERTISED.items()
    assert {key: advertised.get(key, ADVERTISED[2]) for key in ADVERTISED} == ADVERTISED


@pytest.mark.parametrize("version", [3, 4])
def test_the_levels_of_features_are_told(wire: Wire, version: int) -> None:
    answer = wire.ask(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), version)
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert {"metadata.version": 30, "group.version": 1, "transaction.version": 2}.items() <= levels.items()
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    # Before v4 clients could not read a range that begins with 0.
    assert supported.get("transaction.version") == (None if version < 4 else (0, 2))
    assert answer.finalized_features_epoch >= 0


def test_an_unknown_api_versions_version_is_answered_in_version_0_with_the_list(wire: Wire) -> None:
    no_tags = b"\0"
    correlation_id = wire.send_body(18, 99, no_tags)
    frame = memoryview(bytes(wire.receive_frame()))
    assert struct.unpack(">i", frame[:4]) == (correlation_id,)
    answer = decoder(ApiVersionsResponse, 0)(frame[4:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert listed[18] == (0, 4)


@pytest.mark.parametrize("name", ["", "raw client", "-raw"])
def test_api_versions_refuses_a_bad_software_name(wire: Wire, name: str) -> None:
    answer = wire.ask(ApiVersionsRequest(client_software_name=name, client_software_version="1"), 3)
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("api_key", [999, -1, 4, 127])
def test_an_unknown_api_ends_the_connection(wire: Wire, api_key: int) -> None:
    wire.send_frame(struct.pack(">hhih", api_key, 0, 1, -1))
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("api_key", [0, 1, 2, 3, 19, 60])
def test_an_unknown_version_of_another_api_ends_the_connection(wire: Wire, api_key: int) -> None:
    wire.send_body(api_key, 99, b"")
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("version", [0, 2])
def test_produce_below_version_3_is_advertised_but_not_served(wire: Wire, version: int) -> None:
    wire.send_body(0, version, struct.pack(">hii", 1, 1000, 0))
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 104857601])
def test_a_frame_of_an_impossible_size_ends_the_connection(wire: Wire, size: int) -> None:
    wire.socket.sendall(struct.pack(">i", size))
    assert wire.is_closed_by_peer()


@pytest.mark.parametrize("frame", [b"", b"\0", struct.pack(">hhi", 3, 1, 1), struct.pack(">hhih", 3, 1, 1, 50)])
def test_a_frame_without_a_whole_header_ends_the_connection(wire: Wire, frame: bytes) -> None:
    wire.send_frame(frame)
    assert wire.is_closed_by_peer()


def test_a_body_that_ends_early_ends_the_connection(wire: Wire) -> None:
    wire.send_body(3, 1, struct.pack(">i", 5))
    with pytest.raises(ConnectionEndedError):
        wire.receive_frame()


def test_answers_keep_the_order_of_the_requests(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    asked = [
        MetadataRequest(topics=[MetadataRequestTopic(name=topic)]),
        ApiVersionsRequest(),
        MetadataRequest(topics=[]),
    ]
    sent = [(request, wire.send(request, 1)) for request in asked * 5]
    for request, correlation_id in sent:
        key = 18 if isinstance(request, ApiVersionsRequest) else 3
        wire.receive(key, 1, correlation_id)


def test_a_client_id_may_be_absent(wire: Wire) -> None:
    wire.send_frame(encode_request_header(18, 0, 77, None))
    assert struct.unpack(">ih", wire.receive_frame()[:6]) == (77, 0)


@pytest.mark.parametrize("version", range(14))
def test_metadata_describes_a_topic_in_every_version(
    wire: Wire, version: int, new_topic: NewTopic, broker: UnderTest
) -> None:
    topic = new_topic(partitions=2)
    asked = [MetadataRequestTopic(name=topic)]
    answer = wire.ask(MetadataRequest(topics=asked), version)
    [node] = answer.brokers
    assert (node.host, node.port) == broker.address
    [described] = answer.topics
    assert (described.error_code, described.name, described.is_internal) == (0, topic, False)
    partitions = sorted(described.partitions, key=lambda each: each.partition_index)
    assert [each.partition_index for each in partitions] == [0, 1]
    for each in partitions:
        assert (each.error_code, each.leader_id, each.replica_nodes, each.isr_nodes, each.offline_replicas) == (
            0,
            node.node_id,
            [node.node_id],
            [node.node_id],
            [],
        )
        assert each.leader_epoch == (0 if version >= 7 else -1)
    assert (described.topic_id != bytes(16)) == (version >= 10)
    assert described.topic_authorized_operations == NOT_ASKED
    if version >= 1:
        assert answer.controller_id == node.node_id
    if version >= 2:
        assert answer.cluster_id


def test_metadata_null_asks_for_all_topics_and_an_empty_list_for_none(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert topic in names(wire.ask(MetadataRequest(topics=None), 1).topics)
    assert topic in names(wire.ask(MetadataRequest(topics=None), 13).topics)
    assert wire.ask(MetadataRequest(topics=[]), 1).topics == []
    assert wire.ask(MetadataRequest(topics=[]), 13).topics == []


def test_metadata_version_0_asks_for_all_topics_by_an_empty_list(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    assert topic in names(wire.ask(MetadataRequest(topics=[]), 0).topics)


def test_metadata_of_a_missing_topic_creates_it_only_when_allowed(wire: Wire, fresh_name: str) -> None:
    [missing] = metadata(wire, fresh_name).topics
    assert (missing.error_code, missing.name, missing.partitions) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        fresh_name,
        [],
    )
    [missing] = metadata(wire, fresh_name).topics
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    [creating] = metadata(wire, fresh_name, auto_create=True).topics
    assert creating.error_code in (0, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    eventually(lambda: metadata(wire, fresh_name).topics[0].error_code == 0)
    assert len(metadata(wire, fresh_name).topics[0].partitions) == 1


@pytest.mark.parametrize("name", ["a b", "", "..", "x" * 250])
@pytest.mark.parametrize("auto_create", [True, False])
def test_metadata_of_a_bad_name_is_refused(wire: Wire, name: str, auto_create: bool) -> None:
    [refused] = metadata(wire, name, auto_create=auto_create).topics
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [12, 13])
def test_metadata_finds_topics_by_id(wire: Wire, version: int, new_topic: NewTopic) -> None:
    topic = new_topic()
    asked = [MetadataRequestTopic(topic_id=topic_id(wire, topic)), MetadataRequestTopic(topic_id=UNKNOWN_ID)]
    answers = wire.ask(MetadataRequest(topics=asked), version).topics
    found = {bytes(each.topic_id): (each.error_code, each.name) for each in answers}
    assert found == {
        topic_id(wire, topic): (0, topic),
        UNKNOWN_ID: (ErrorCode.UNKNOWN_TOPIC_ID, None),
    }


def test_metadata_tells_the_allowed_operations_when_asked(wire: Wire, new_topic: NewTopic) -> None:
    topic = new_topic()
    answer = metadata(wire, topic, version=10, include_topic_authorized_operations=True)
    assert answer.topics[0].topic_authorized_operations == 0b110111111000
    answer = metadata(wire, f"{topic}-missing", "a b", version=13, include_topic_authorized_operations=True)
    assert [each.topic_authorized_operations for each in answer.topics] == [0b110111111000] * 2
    answer = wire.ask(MetadataRequest(topics=[], include_cluster_authorized_operations=True), 10)
    assert answer.cluster_authorized_operations == 0b1111110100000


def test_every_declared_api_is_advertised(wire: Wire) -> None:
    advertised = {each.api_key: each for each in wire.ask(ApiVersionsRequest(), 0).api_keys}
    for api in API.values():
        assert api.key in advertised, api.name
        assert advertised[api.key].max_version >= api.version_max, api.name
