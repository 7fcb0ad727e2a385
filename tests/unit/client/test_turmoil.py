"""Brokers that fall silent, break off, refuse, move and talk nonsense, in any order: each request has one end."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.unit.client.virtual import LATER, Asked, VirtualDriver, network_of, refused, versions_answer

from lowwater.client.config import Address
from lowwater.client.errors import ClientError, TlsError
from lowwater.client.network import FETCHING, USUAL, Network
from lowwater.pending import Pending
from lowwater.wire.messages import FetchRequest, FetchResponse, HeartbeatRequest, HeartbeatResponse
from lowwater.wire.messages.fetch import FetchableTopicResponse, PartitionData
from lowwater.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from lowwater.wire.messages.sasl_handshake import SaslHandshakeResponse

ADDRESSES = [Address("a", 1), Address("b", 2), Address("c", 3), Address("d", 4)]
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
FETCH = FetchRequest(max_wait_ms=1, min_bytes=1, topics=[])
SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "PLAIN",
    "sasl_username": "ann",
    "sasl_password": "sesame",
}
STEPS = 60
REQUEST_TIMEOUT_MS = 3_000


class Turmoil:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.driver = VirtualDriver(self.answer, seed)
        more = SASL if self.random.random() < 0.5 else {}
        self.network: Network = network_of(
            self.driver,
            bootstrap_servers="a:1,b:2",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            socket_connection_setup_timeout_ms=1_000,
            connections_max_idle_ms=5_000,
            max_in_flight=self.random.choice([1, 2, 5]),
            **more,
        )
        self.held: list[Asked] = []
        self.waiting: list[Pending[Any]] = []
        self.ends: list[Pending[Any]] = []
        self.abandoned = 0

    def answer(self, asked: Asked) -> Any:
        if self.random.random() < 0.15:
            self.held.append(asked)
            return LATER
        return self._answer_to(asked)

    def _answer_to(self, asked: Asked) -> Any:
        size = self.random.choice([0, 100, 70_000, 200_000])
        data = PartitionData(partition_index=0, high_watermark=1, records=b"r" * size)
        return {
            "ApiVersions": versions_answer(),
            "SaslHandshake": SaslHandshakeResponse(mechanisms=["PLAIN"]),
            "SaslAuthenticate": SaslAuthenticateResponse(auth_bytes=b"", session_lifetime_ms=2_000),
            "Heartbeat": HeartbeatResponse(throttle_time_ms=self.random.choice([0, 0, 0, 300])),
            "Fetch": FetchResponse(responses=[FetchableTopicResponse(topic_id=b"i" * 16, partitions=[data])]),
        }[asked.api.name]

    def step(self) -> None:
        actions = [self.ask, self.ask, self.ask, self.drop, self.refuse, self.heal, self.move, self.nonsense]
        self.random.choice([*actions, self.release, self.abandon])()
        self.driver.piece_bytes = self.random.choice([1 << 30, 5_000])
        self.driver.time.advance(self.random.choice([0, 0, 10, 200, 1_500]))

    def ask(self) -> None:
        request = self.random.choice([BEAT, FETCH])
        if self.random.random() < 0.3:
            answer = self.network.ask_any(request)
        else:
            lane = self.random.choice([USUAL, FETCHING])
            answer = self.network.ask(self.random.choice([1, 2, 3]), request, lane=lane)
        self.waiting.append(answer)
        answer.on_done(self.ends.append)

    def drop(self) -> None:
        for line in self.driver.open_lines:
            if self.random.random() < 0.5:
                line.drop()

    def refuse(self) -> None:
        address = self.random.choice(ADDRESSES)
        error = self.random.choice([refused(address), TlsError("not trusted")])
        self.driver.unreachable[address] = error
        self.driver.silent.add(self.random.choice(ADDRESSES))

    def heal(self) -> None:
        self.driver.unreachable.clear()
        self.driver.silent.clear()

    def move(self) -> None:
        nodes = [node for node in (1, 2, 3) if self.random.random() < 0.7]
        self.network.learn({node: self.random.choice(ADDRESSES) for node in nodes})

    def nonsense(self) -> None:
        if self.driver.open_lines and self.random.random() < 0.3:
            self.random.choice(self.driver.open_lines).deliver(self.random.randbytes(self.random.choice([3, 8, 40])))

    def release(self) -> None:
        held, self.held = self.held, []
        for asked in held:
            if asked.line.is_open:
                asked.answer(self._answer_to(asked))

    def abandon(self) -> None:
        open_ones = [answer for answer in self.waiting if not answer.done]
        if open_ones:
            given_up = self.random.choice(open_ones)
            self.waiting.remove(given_up)
            given_up.abandon()
            self.abandoned += 1


@pytest.mark.parametrize("block", range(8))
def test_every_request_ends_once_and_in_time(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        turmoil = Turmoil(seed)
        for _ in range(STEPS):
            turmoil.step()
        turmoil.driver.time.advance(REQUEST_TIMEOUT_MS)
        assert all(answer.done for answer in turmoil.waiting), f"seed {seed}: a request outlived its deadline"
        assert len(turmoil.ends) <= len(turmoil.waiting) + turmoil.abandoned
        _check_outcomes(turmoil, seed)
        turmoil.network.close()
        assert turmoil.driver.open_lines == [], f"seed {seed}: a connection is left"


def _check_outcomes(turmoil: Turmoil, seed: int) -> None:
    """Answers, or errors of the client's own that give no secret away; nothing else comes out."""
    for answer in turmoil.waiting:
        text = ""
        try:
            answer.result()
        except ClientError as error:
            text = str(error)
        assert "sesame" not in text, f"seed {seed}"


@pytest.mark.parametrize("seed", range(10))
def test_a_client_recovers_when_its_brokers_do(seed: int) -> None:
    turmoil = Turmoil(seed)
    for _ in range(STEPS):
        turmoil.step()
    turmoil.heal()
    turmoil.random = random.Random(1)  # kinder
    turmoil.answer = lambda asked: turmoil._answer_to(asked)  # type: ignore[method-assign]
    turmoil.driver.answer = turmoil.answer
    turmoil.network.learn({1: ADDRESSES[2], 2: ADDRESSES[3]})
    turmoil.driver.time.advance(2 * REQUEST_TIMEOUT_MS)
    answers = [turmoil.network.ask(node, BEAT) for node in (1, 2)]
    turmoil.driver.time.advance(2_500)
    assert [answer.result().error_code for answer in answers] == [0, 0]
