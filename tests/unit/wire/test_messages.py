"""The table of APIs, and bytes that real clients send which no other test has."""

from lowwater.wire import messages
from lowwater.wire.messages import API, ListOffsetsRequest, ListOffsetsResponse, MetadataRequest
from lowwater.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from lowwater.wire.schema import decoder, encoder, fields_of


def test_the_table_names_each_api_by_its_messages() -> None:
    for key, api in API.items():
        assert api.key == key
        assert api.request.__name__ == f"{api.name}Request"
        assert api.response.__name__ == f"{api.name}Response"
        assert getattr(messages, api.request.__name__) is api.request
        assert getattr(messages, api.response.__name__) is api.response


def test_every_declaration_has_a_contract() -> None:
    waiting = [cls for api in API.values() for cls in (api.request, api.response)]
    while waiting:
        cls = waiting.pop()
        assert cls.__doc__, cls
        waiting += [field.struct for field in fields_of(cls) if field.struct]


def test_the_oldest_list_offsets_request() -> None:
    partition = ListOffsetsPartition(partition_index=3, timestamp=-1, max_num_offsets=2)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    data = bytes.fromhex("ffffffff 00000001 000174 00000001 00000003 ffffffffffffffff 00000002")
    assert encoder(ListOffsetsRequest, 0)(request) == data
    assert decoder(ListOffsetsRequest, 0)(memoryview(data)) == request


def test_the_oldest_list_offsets_response() -> None:
    partition = ListOffsetsPartitionResponse(partition_index=3, old_style_offsets=[8, 7])
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[partition])])
    data = bytes.fromhex("00000001 000174 00000001 00000003 0000 00000002 0000000000000008 0000000000000007")
    assert encoder(ListOffsetsResponse, 0)(response) == data
    assert decoder(ListOffsetsResponse, 0)(memoryview(data)) == response


def test_librdkafka_asks_for_all_topics_with_bytes_left_over() -> None:
    # Metadata v13 of librdkafka 2.16: a null array of four bytes where one is meant.
    request = decoder(MetadataRequest, 13)(memoryview(bytes.fromhex("00000000010000")))
    assert request.topics is None
