"""From frames to replies: what is served, what ends a connection, and what a failing request may harm."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.unit.broker.talk import begin_fetch, create, produce, send

from lowwater.broker.router import SERVED_APIS, Waits
from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.pending import Pending
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.frame import encode_request_header
from lowwater.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataRequest,
    MetadataResponse,
)
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.schema import decoder


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker()


def header(api_key: int, version: int) -> bytes:
    return encode_request_header(api_key, version, 7, "tests")


@pytest.mark.parametrize("key", [-1, 4, 999, 32767])
def test_an_api_that_is_not_served_ends_the_connection(broker: VirtualBroker, key: int) -> None:
    with pytest.raises(WireError, match="not served"):
        broker.dispatch(header(key, 0))


@pytest.mark.parametrize("api", SERVED_APIS.values(), ids=lambda api: api.name)
def test_a_version_that_is_not_served_ends_the_connection(broker: VirtualBroker, api: Any) -> None:
    for version in {-1, api.version_min - 1, api.version_max + 1, 256, 32767}:
        if api.name == "ApiVersions":
            continue
        with pytest.raises(WireError, match="not served"):
            broker.dispatch(header(api.key, version) + bytes(100))


def test_a_version_beyond_a_byte_is_not_taken_for_another_api(broker: VirtualBroker) -> None:
    broker.ask(MetadataRequest(topics=[]), 0)
    for key, version in ((2, 0x100), (1, 0x200), (0, 0x300), (-1, 0x400)):
        with pytest.raises(WireError, match="not served"):
            broker.dispatch(struct.pack(">hhih", key, version, 7, -1) + struct.pack(">i", 0))


@pytest.mark.parametrize("version", [-1, 5, 99, 32767])
def test_a_newer_client_learns_our_versions(broker: VirtualBroker, version: int) -> None:
    reply = broker.dispatch(struct.pack(">hhih", 18, version, 7, -1))
    assert isinstance(reply, list)
    body = b"".join(bytes(part) for part in reply)[8:]
    answer = decoder(ApiVersionsResponse, 0)(memoryview(body))
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [one.api_key for one in answer.api_keys] == [18]


def test_what_is_advertised_is_what_is_served(broker: VirtualBroker) -> None:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    answer = broker.ask(request)
    told = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    served = {api.key: (api.version_min, api.version_max) for api in SERVED_APIS.values()}
    assert told == {**served, 0: (0, 13)}


def test_a_body_that_cannot_be_read_ends_the_connection(broker: VirtualBroker) -> None:
    with pytest.raises(WireError):
        broker.dispatch(header(3, 9) + b"\xff\xff\xff")
    with pytest.raises(WireError):
        broker.dispatch(b"\0\3")


def test_requests_are_counted_by_api(broker: VirtualBroker) -> None:
    for version in (0, 5, 5):
        broker.ask(MetadataRequest(topics=[]), version)
    broker.ask(DescribeClusterRequest())
    assert broker.router.requests_by_api() == {"Metadata": 3, "DescribeCluster": 1}


def test_a_produce_lets_later_requests_pass_and_a_fetch_does_not(broker: VirtualBroker) -> None:
    create(broker, "t")
    passes: list[bool] = []
    dispatch = broker.router.dispatch

    def noting(frame: memoryview, peer: Any) -> Any:
        answer = dispatch(frame, peer)
        if isinstance(answer, Waits):
            passes.append(answer.pipelines)
        return answer

    broker.router.dispatch = noting  # type: ignore[method-assign]
    begin_fetch(broker, "t", wait_ms=100)
    send(broker, "t", b"x")
    assert passes == [False, True]


# -- failures


class Interceptor:
    """Answers one API in a way of its own."""

    def __init__(self, api: str, answer: Any) -> None:
        self._api = api
        self._answer = answer

    def __call__(self, route: Any, request: Any, context: Any) -> Any:
        if route.api.name != self._api:
            return None
        return self._answer() if callable(self._answer) else self._answer


def unsayable() -> MetadataResponse:
    return MetadataResponse(brokers=[], controller_id=2**40, topics=[])


def test_an_expected_error_becomes_an_answer(broker: VirtualBroker) -> None:
    def refuse() -> Any:
        raise ApiError(ErrorCode.NOT_CONTROLLER, "not here")

    class Handler:
        """Stands for any handler that raises."""

        def __call__(self, *_: Any) -> Any:
            return refuse()

    broker.ask(DescribeClusterRequest())
    route = next(route for route in broker.router._routes.values() if route.api.name == "DescribeCluster")
    route.handler = Handler()
    assert broker.ask(DescribeClusterRequest()).error_code == ErrorCode.NOT_CONTROLLER


def test_an_expected_error_of_a_pending_answer_becomes_an_answer(broker: VirtualBroker) -> None:
    pending: Pending[Any] = Pending()
    broker.router.intercept = Interceptor("DescribeCluster", pending)
    asked = broker.send(DescribeClusterRequest())
    assert not asked.is_answered
    pending.fail(ApiError(ErrorCode.NOT_CONTROLLER, "not here"))
    assert asked.response.error_code == ErrorCode.NOT_CONTROLLER


def test_an_unexpected_error_is_the_connections_end(broker: VirtualBroker) -> None:
    pending: Pending[Any] = Pending()
    broker.router.intercept = Interceptor("DescribeCluster", pending)
    asked = broker.send(DescribeClusterRequest())
    pending.fail(RuntimeError("bug"))
    with pytest.raises(RuntimeError, match="bug"):
        _ = asked.response


def test_an_answer_that_cannot_be_encoded_harms_nobody_but_its_connection(broker: VirtualBroker) -> None:
    pending: Pending[Any] = Pending()
    broker.router.intercept = Interceptor("Metadata", pending)
    asked = broker.send(MetadataRequest(topics=[]))
    settled_after: list[str] = []
    pending.on_done(lambda _: settled_after.append("whoever waits behind it"))
    pending.resolve(unsayable())
    assert settled_after
    with pytest.raises(ValueError, match="MetadataResponse"):
        _ = asked.response


def test_a_name_that_grows_when_it_is_quoted_does_not_stop_the_changes_behind_it(broker: VirtualBroker) -> None:
    hostile = CreatableTopic(name="\x00" * 30_000, num_partitions=1, replication_factor=1, assignments=[], configs=[])
    answer = broker.ask(CreateTopicsRequest(topics=[hostile], timeout_ms=1000))
    assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    create(broker, "after")
    assert produce(broker, "after", b"x").error_code == 0


def test_an_interceptor_that_has_nothing_to_say_lets_the_request_pass(broker: VirtualBroker) -> None:
    broker.router.intercept = Interceptor("Metadata", DescribeClusterResponse)
    assert broker.ask(DescribeClusterRequest()).error_code == 0


def test_who_goes_before_the_answer_lets_the_handler_know(broker: VirtualBroker) -> None:
    pending: Pending[Any] = Pending()
    gone: list[bool] = []
    pending.on_abandon = lambda: gone.append(True)
    broker.router.intercept = Interceptor("Metadata", pending)
    broker.send(MetadataRequest(topics=[])).disconnect()
    assert gone == [True]
