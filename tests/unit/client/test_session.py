"""One connection: versions, the login, which answer belongs to whom, and every way in which it may end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client.virtual import LATER, Asked, VirtualDriver, network_of, talking, versions_answer

from lowwater.client.config import Address
from lowwater.client.errors import (
    AuthenticationError,
    ConnectError,
    DisconnectedError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedError,
)
from lowwater.errors import ErrorCode
from lowwater.pending import Pending
from lowwater.wire.messages import (
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from lowwater.wire.messages.api_versions import ApiVersion
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.metadata import MetadataResponseTopic
from lowwater.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from lowwater.wire.messages.sasl_handshake import SaslHandshakeResponse

A = Address("a", 1)
SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ann",
    "sasl_password": "sesame",
}
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def connected(answers: dict[str, Any], **settings: Any) -> tuple[VirtualDriver, Callable[..., Pending[Any]]]:
    driver = VirtualDriver(talking({"Heartbeat": HeartbeatResponse(), **answers}))
    network = network_of(driver, **settings)
    network.learn({7: A})
    return driver, lambda request, **options: network.ask(7, request, **options)


def settled(driver: VirtualDriver, pending: Pending[Any]) -> Any:
    driver.time.settle()
    return pending.result()


# ---- versions


def test_the_newest_version_that_both_know_is_spoken() -> None:
    driver, ask = connected({"ApiVersions": versions_answer({12: (0, 2), 18: (0, 4)})})
    settled(driver, ask(BEAT))
    assert [asked.version for asked in driver.requests("Heartbeat")] == [2]


def test_a_request_is_made_for_the_version_that_is_spoken() -> None:
    driver, ask = connected({"ApiVersions": versions_answer({12: (0, 1), 18: (0, 4)})})
    made: list[int] = []

    def build(version: int) -> HeartbeatRequest:
        made.append(version)
        return BEAT

    settled(driver, ask(build, api=HeartbeatRequest))
    assert made == [1]


def test_versions_can_be_limited() -> None:
    driver, ask = connected({})
    settled(driver, ask(BEAT, versions=(0, 3)))
    assert [asked.version for asked in driver.requests("Heartbeat")] == [3]


def old_broker(asked: Asked) -> Any:
    """Knows ApiVersions up to v3, and says so in v0."""
    if asked.version <= 3:
        return versions_answer()
    known = [ApiVersion(api_key=18, min_version=0, max_version=3)]
    asked.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=known), version=0)
    return LATER


def very_old_broker(asked: Asked) -> Any:
    if asked.version == 0:
        return versions_answer()
    asked.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[]), version=0)
    return LATER


@pytest.mark.parametrize(("broker", "asked"), [(old_broker, [4, 3]), (very_old_broker, [4, 0])])
def test_a_broker_that_does_not_know_the_question_is_asked_again_in_its_words(broker: Any, asked: list[int]) -> None:
    driver, ask = connected({"ApiVersions": broker})
    settled(driver, ask(BEAT))
    assert [each.version for each in driver.requests("ApiVersions")] == asked


@pytest.mark.parametrize("theirs", [{18: (0, 4)}, {12: (9, 10), 18: (0, 4)}])
def test_what_the_broker_does_not_know_fails_without_being_sent(theirs: dict[int, tuple[int, int]]) -> None:
    driver, ask = connected({"ApiVersions": versions_answer(theirs)})
    answer = ask(BEAT)
    driver.time.settle()
    with pytest.raises(UnsupportedError, match="Heartbeat cannot be asked of a:1"):
        answer.result()
    assert driver.requests("Heartbeat") == []


def test_what_cannot_be_said_in_the_common_version_fails_without_being_sent() -> None:
    driver, ask = connected({"ApiVersions": versions_answer({12: (0, 1), 18: (0, 4)})})
    static = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i")
    answer = ask(static)
    driver.time.settle()
    with pytest.raises(UnsupportedError):
        answer.result()
    settled(driver, ask(BEAT))  # the connection is as good as before


# ---- answers


def test_answers_belong_to_requests_in_order_and_may_come_in_any_pieces() -> None:
    driver, ask = connected({"Heartbeat": LATER})
    answers = [ask(BEAT) for _ in range(3)]
    driver.time.settle()
    driver.piece_bytes = 1
    for code, asked in enumerate(driver.requests("Heartbeat")):
        asked.answer(HeartbeatResponse(error_code=code))
    driver.time.settle()
    assert [each.result().error_code for each in answers] == [0, 1, 2]


def test_only_so_many_requests_are_under_way() -> None:
    driver, ask = connected({"Heartbeat": LATER}, max_in_flight=2)
    answers = [ask(BEAT) for _ in range(5)]
    driver.time.settle()
    assert len(driver.requests("Heartbeat")) == 2
    driver.requests("Heartbeat")[0].answer(HeartbeatResponse())
    driver.time.settle()
    assert len(driver.requests("Heartbeat")) == 3
    assert [each.done for each in answers] == [True, False, False, False, False]


def test_a_request_without_an_answer_is_done_when_it_was_sent() -> None:
    driver, ask = connected({"Produce": LATER})
    produce = ProduceRequest(acks=0, timeout_ms=1, topic_data=[])
    assert settled(driver, ask(produce, answered=False)) is None
    assert settled(driver, ask(BEAT)).error_code == 0


@pytest.mark.parametrize("size", [10, 100, 70_000, 300_000])
@pytest.mark.parametrize("piece", [1 << 30, 4096, 999])
def test_records_stay_in_the_memory_they_were_received_in_until_released(size: int, piece: int) -> None:
    records = bytes(range(256)) * (size // 256 + 1)
    data = PartitionData(partition_index=0, high_watermark=1, records=records)
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=b"i" * 16, partitions=[data])])
    driver, ask = connected({"Fetch": response})
    driver.piece_bytes = piece
    fetch = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
    first, second = (settled(driver, ask(fetch)) for _ in range(2))
    views = [each.response.responses[0].partitions[0].records for each in (first, second)]
    assert all(isinstance(view, memoryview) for view in views)
    assert [bytes(view) for view in views] == [records, records]
    first.release()
    first.release()
    assert bytes(views[1]) == records


def test_released_memory_is_used_again() -> None:
    data = PartitionData(partition_index=0, high_watermark=1, records=b"x" * 300_000)
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=b"i" * 16, partitions=[data])])
    driver = VirtualDriver(talking({"Fetch": response}))
    network = network_of(driver)
    network.learn({7: A})
    fetch = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
    for _ in range(3):
        held = settled(driver, network.ask(7, fetch))
        assert network.buffers.kept_bytes == 0
        held.release()
        assert network.buffers.kept_bytes == 320 * 1024


def test_a_large_answer_without_records_gives_its_memory_back_by_itself() -> None:
    topics = [MetadataResponseTopic(name=f"topic-{number}", partitions=[]) for number in range(5_000)]
    metadata = MetadataResponse(brokers=[], cluster_id="c", topics=topics)
    driver = VirtualDriver(talking({"Metadata": metadata}))
    network = network_of(driver)
    answer = settled(driver, network.ask_any(MetadataRequest(topics=None)))
    assert len(answer.topics) == 5_000
    assert network.buffers.kept_bytes > 0


def test_an_answer_that_nobody_waits_for_any_more_is_thrown_away() -> None:
    driver, ask = connected({"Heartbeat": LATER})
    given_up, wanted = ask(BEAT), ask(BEAT)
    driver.time.settle()
    given_up.abandon()
    for code, asked in enumerate(driver.requests("Heartbeat")):
        asked.answer(HeartbeatResponse(error_code=code))
    assert settled(driver, wanted).error_code == 1
    assert not given_up.done


# ---- ends


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\2xx",
        b"\0\0\0\4\0\0\0\x63",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
)
def test_what_is_not_the_protocol_closes_the_connection(bytes_sent: bytes) -> None:
    driver, ask = connected({"Heartbeat": LATER})
    answer = ask(BEAT)
    driver.time.settle()
    driver.lines[0].deliver(bytes_sent)
    driver.time.settle()
    with pytest.raises(ProtocolError, match="a:1 sent what is not Kafka's protocol"):
        answer.result()
    assert driver.open_lines == []


def test_an_answer_to_nothing_closes_the_connection() -> None:
    driver, ask = connected({})
    settled(driver, ask(BEAT))
    driver.lines[0].deliver(b"\0\0\0\4\0\0\0\x63")
    driver.time.settle()
    assert driver.open_lines == []


def test_the_answer_to_another_request_is_not_taken_for_this_one() -> None:
    driver, ask = connected({"Heartbeat": LATER})
    answer = ask(BEAT)
    driver.time.settle()
    asked = driver.requests("Heartbeat")[0]
    asked.correlation_id += 1
    asked.answer(HeartbeatResponse())
    driver.time.settle()
    with pytest.raises(ProtocolError, match="the answer to request"):
        answer.result()


def test_an_answer_that_cannot_be_decoded_is_an_error_of_its_request() -> None:
    driver, ask = connected({"Heartbeat": LATER})
    answer = ask(BEAT)
    driver.time.settle()
    asked = driver.requests("Heartbeat")[0]
    driver.lines[0].deliver(b"\0\0\0\6" + asked.correlation_id.to_bytes(4, "big") + b"\0\xff")
    driver.time.settle()
    with pytest.raises(ProtocolError, match="HeartbeatResponse"):
        answer.result()


def test_a_broken_connection_fails_what_was_sent_and_says_what_that_was() -> None:
    driver, ask = connected({"Heartbeat": LATER})
    answer = ask(BEAT)
    driver.time.settle()
    driver.lines[0].drop()
    with pytest.raises(DisconnectedError, match="a:1 closed the connection, before the answer to Heartbeat came"):
        answer.result()


def test_every_request_has_a_deadline() -> None:
    driver, ask = connected({"Heartbeat": LATER}, request_timeout_ms=2_000)
    late, behind = ask(BEAT), ask(BEAT, timeout_ms=60_000)
    driver.time.advance(1_999)
    assert not late.done
    driver.time.advance(2)
    with pytest.raises(RequestTimeoutError, match="no answer to Heartbeat from a:1 in 2 s"):
        late.result()
    with pytest.raises(DisconnectedError):
        behind.result()
    assert driver.lines[0].is_open is False


def test_a_short_deadline_is_the_callers_own_and_leaves_the_connection_to_others() -> None:
    driver, ask = connected({"Heartbeat": LATER}, request_timeout_ms=2_000)
    short, patient = ask(BEAT, timeout_ms=50), ask(BEAT)
    driver.time.advance(51)
    with pytest.raises(RequestTimeoutError, match=r"in 0\.05 s"):
        short.result()
    for code, asked in enumerate(driver.requests("Heartbeat")):
        asked.answer(HeartbeatResponse(error_code=code))
    assert settled(driver, patient).error_code == 1
    driver.time.advance(2_000)
    assert len(driver.open_lines) == 1


@pytest.mark.parametrize("gives_up", [True, False])
def test_a_connection_on_which_nothing_comes_is_closed_even_when_nobody_waits(gives_up: bool) -> None:
    driver, ask = connected({"Heartbeat": LATER}, request_timeout_ms=2_000)
    answer = ask(BEAT, timeout_ms=50)
    driver.time.settle()
    if gives_up:
        answer.abandon()
    driver.time.advance(1_999)
    assert len(driver.open_lines) == 1
    driver.time.advance(2)
    assert driver.open_lines == []


def test_a_token_is_not_shown_where_a_request_is() -> None:
    assert "sesame" not in repr(SaslAuthenticateRequest(auth_bytes=b"\0ann\0sesame"))


def test_a_broker_that_says_nothing_is_given_up() -> None:
    driver, ask = connected({}, socket_connection_setup_timeout_ms=500)
    driver.silent.add(A)
    answer = ask(BEAT)
    driver.time.advance(501)
    with pytest.raises(ConnectError, match=r"a:1 did not let us in within 0\.5 s"):
        answer.result()
    assert driver.open_lines == []


def test_a_port_that_closes_at_once_raises_the_question_of_the_protocol() -> None:
    driver, ask = connected({"ApiVersions": LATER})
    answer = ask(BEAT)
    driver.time.settle()
    driver.lines[0].drop()
    with pytest.raises(ConnectError, match=r"is security\.protocol=PLAINTEXT right for this port\?"):
        answer.result()


# ---- login


def sasl(lifetime_ms: int = 0) -> dict[str, Any]:
    return {
        "SaslHandshake": SaslHandshakeResponse(mechanisms=["PLAIN"]),
        "SaslAuthenticate": SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=lifetime_ms),
    }


def names(driver: VirtualDriver) -> list[str]:
    return [asked.api.name for line in driver.lines for asked in line.asked]


def test_nothing_is_asked_before_the_login() -> None:
    driver, ask = connected(sasl(), **SASL)
    settled(driver, ask(BEAT))
    assert names(driver) == ["ApiVersions", "SaslHandshake", "SaslAuthenticate", "Heartbeat"]
    assert driver.requests("SaslAuthenticate")[0].request.auth_bytes == b"\0ann\0sesame"


def test_a_mechanism_that_is_not_offered_is_an_error_that_names_those_that_are() -> None:
    refusal = SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["SCRAM-SHA-512"])
    driver, ask = connected({**sasl(), "SaslHandshake": refusal}, **SASL)
    answer = ask(BEAT)
    driver.time.settle()
    with pytest.raises(AuthenticationError, match="does not offer PLAIN; it offers SCRAM-SHA-512"):
        answer.result()
    assert driver.open_lines == []


def test_a_refused_login_is_an_error_that_does_not_quote_the_password() -> None:
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed", auth_bytes=b""
    )
    driver, ask = connected({**sasl(), "SaslAuthenticate": refusal}, **SASL)
    answer = ask(BEAT)
    driver.time.settle()
    with pytest.raises(AuthenticationError, match="Authentication failed") as failure:
        answer.result()
    assert "sesame" not in str(failure.value)


def test_a_broker_without_logins_is_told_apart() -> None:
    driver, ask = connected({**sasl(), "ApiVersions": versions_answer({12: (0, 4), 18: (0, 4)})}, **SASL)
    answer = ask(BEAT)
    driver.time.settle()
    with pytest.raises(UnsupportedError, match=r"is security\.protocol right for this port\?"):
        answer.result()


def test_a_login_is_renewed_on_the_same_connection_before_it_ends() -> None:
    driver, ask = connected(sasl(lifetime_ms=10_000), **SASL)
    settled(driver, ask(BEAT))
    driver.time.advance(8_400)
    settled(driver, ask(BEAT))
    assert names(driver).count("SaslAuthenticate") == 1
    driver.time.advance(1_150)
    settled(driver, ask(BEAT))
    assert names(driver)[-3:] == ["SaslHandshake", "SaslAuthenticate", "Heartbeat"]
    assert len(driver.lines) == 1


def test_requests_wait_while_the_login_is_renewed() -> None:
    driver, ask = connected(sasl(lifetime_ms=1_000), **SASL)
    settled(driver, ask(BEAT))
    driver.time.advance(990)
    driver.answer = talking({"SaslHandshake": LATER, "Heartbeat": HeartbeatResponse(), **_without_handshake()})
    answers = [ask(BEAT) for _ in range(3)]
    driver.time.settle()
    assert names(driver)[-1] == "SaslHandshake"
    driver.requests("SaslHandshake")[-1].answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    driver.time.settle()
    assert all(each.done for each in answers)


def _without_handshake() -> dict[str, Any]:
    return {name: answer for name, answer in sasl(1_000).items() if name != "SaslHandshake"}


def test_a_login_that_cannot_be_renewed_ends_the_connection_and_what_waits() -> None:
    driver, ask = connected(sasl(lifetime_ms=1_000), **SASL)
    settled(driver, ask(BEAT))
    driver.time.advance(990)
    refusal = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, auth_bytes=b"")
    driver.answer = talking({**sasl(), "SaslAuthenticate": refusal})
    answer = ask(BEAT)
    driver.time.settle()
    with pytest.raises(AuthenticationError):
        answer.result()
    assert driver.open_lines == []
