"""A whole request answered with one error: each API says it where its clients look for it, in every version."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.golden.instances import Style, instance

from lowwater.broker.refusal import refuse
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.fields import Array
from lowwater.wire.messages import API, Api
from lowwater.wire.schema import decoder, encoder, fields_of

CODE = ErrorCode.NOT_CONTROLLER
ROUTES = [(api, version) for api in API.values() for version in range(api.version_min, api.version_max + 1)]
VERSIONS = [pytest.param(api, version, id=f"{api.name} v{version}") for api, version in ROUTES]
# API -> what an error is said about, when the request names two of everything
SCOPE = {
    "Produce": "partition",
    "Fetch": "partition",
    "ListOffsets": "partition",
    "Metadata": "topic",
    "OffsetCommit": "partition",
    "OffsetFetch": "group",
    "FindCoordinator": "key",
    "JoinGroup": "request",
    "Heartbeat": "request",
    "LeaveGroup": "request",
    "SyncGroup": "request",
    "DescribeGroups": "group",
    "ListGroups": "request",
    "ApiVersions": "request",
    "CreateTopics": "topic",
    "DeleteTopics": "topic",
    "DeleteRecords": "partition",
    "InitProducerId": "request",
    "AddPartitionsToTxn": "partition",
    "AddOffsetsToTxn": "request",
    "EndTxn": "request",
    "WriteTxnMarkers": "partition of a marker",
    "TxnOffsetCommit": "partition",
    "OffsetForLeaderEpoch": "partition",
    "DescribeConfigs": "resource",
    "AlterConfigs": "resource",
    "DescribeLogDirs": "request",
    "CreatePartitions": "topic",
    "ElectLeaders": "partition",
    "DeleteGroups": "group",
    "IncrementalAlterConfigs": "resource",
    "OffsetDelete": "request",
    "DescribeClientQuotas": "request",
    "AlterClientQuotas": "entry",
    "DescribeQuorum": "partition",
    "DescribeCluster": "request",
    "DescribeProducers": "partition",
    "DescribeTransactions": "transaction",
    "ListTransactions": "request",
    "UpdateFeatures": "request",
    "ListConfigResources": "request",
    "ConsumerGroupHeartbeat": "request",
    "ConsumerGroupDescribe": "group",
    "DescribeTopicPartitions": "topic",
}
ANSWERS = {
    "partition of a marker": 8,
    "partition": 4,
    "topic": 2,
    "resource": 2,
    "entry": 2,
    "key": 2,
    "group": 2,
    "transaction": 2,
    "request": 1,
    "nothing": 0,
}


def two_of_everything(cls: type[Any], version: int, draw: random.Random) -> Any:
    """Every field set, every array of two different elements."""
    made = instance(cls, version, Style.FULL, draw)
    for field in fields_of(cls):
        if field.present(version) and isinstance(field.shape, Array):
            item = field.shape.item
            if isinstance(item, type):
                setattr(made, field.name, [two_of_everything(item, version, draw) for _ in range(2)])
            else:
                setattr(made, field.name, (getattr(made, field.name) * 2)[:2])
    return made


def error_codes(message: Any) -> Iterator[int]:
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name in ("error_code", "partition_error_code"):
            yield value
        elif field.struct is not None and isinstance(value, list):
            for one in value:
                yield from error_codes(one)


def refused(api: Api, version: int, error: ApiError) -> tuple[Any, Any]:
    """A request and the answer to it, both as they arrive."""
    draw = random.Random(f"{api.name}-{version}")
    request = two_of_everything(api.request, version, draw)
    arrived = decoder(api.request, version)(memoryview(bytearray(encoder(api.request, version)(request))))
    answer = refuse(api, arrived, error, version)
    return arrived, decoder(api.response, version)(memoryview(encoder(api.response, version)(answer)))


def test_every_api_has_its_scope_here() -> None:
    assert set(SCOPE) == {api.name for api in API.values()}


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_the_error_stands_at_the_narrowest_scope_and_nowhere_else(api: Api, version: int) -> None:
    _, answer = refused(api, version, ApiError(CODE, "not now"))
    said = [code for code in error_codes(answer) if code]
    scope = SCOPE[api.name]
    if api.name == "FindCoordinator" and version < 4:
        scope = "request"
    if api.name == "AddPartitionsToTxn" and version >= 4:
        scope = "request"
    if api.name == "OffsetFetch" and version < 8:
        scope = "request" if version >= 2 else "partition"
    if api.name == "DescribeLogDirs" and version < 3:
        scope = "nothing"  # these have no place for it: Kafka, too, answers them without any directory
    assert said == [CODE] * ANSWERS[scope]


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_an_error_text_of_any_length_can_be_said(api: Api, version: int) -> None:
    refused(api, version, ApiError(CODE, "漢" * 100_000))


@pytest.mark.parametrize("version", range(3, 14))
def test_the_answer_names_what_was_asked(version: int) -> None:
    request, answer = refused(API[0], version, ApiError(CODE, ""))
    assert [(topic.name, topic.topic_id) for topic in answer.responses] == [
        (topic.name, topic.topic_id) for topic in request.topic_data
    ]
    assert [[one.index for one in topic.partition_responses] for topic in answer.responses] == [
        [one.index for one in topic.partition_data] for topic in request.topic_data
    ]


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_to_be_deleted_are_named_in_old_and_new_versions(version: int) -> None:
    request, answer = refused(API[20], version, ApiError(CODE, ""))
    asked = request.topic_names if version < 6 else [topic.name for topic in request.topics]
    assert [one.name for one in answer.responses] == asked


def test_an_error_that_concerns_no_part_is_said_for_the_whole() -> None:
    for api in (API[1], API[43]):
        request = api.request(topics=[]) if api.key == 1 else api.request(topic_partitions=None)
        assert refuse(api, request, ApiError(CODE, ""), api.version_max).error_code == CODE
