"""Logins of every kind against Apache Kafka, over TLS and in clear, with both drivers."""

from __future__ import annotations

import base64
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.client.certificates import KEY_PASSWORD, Certificates, make
from tests.integration.client.drivers import DRIVERS
from tests.integration.client.secured_kafka import PASSWORD, REAUTH_MS, jaas, secured_kafka

from lowwater.client.cluster import Cluster
from lowwater.client.driver import sleep
from lowwater.client.errors import AuthenticationError, ClientError
from lowwater.spark.kafka_options import client_settings
from lowwater.wire.messages import CreateTopicsRequest, ListOffsetsRequest
from lowwater.wire.messages.create_topics import CreatableTopic
from lowwater.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic

if TYPE_CHECKING:
    from peers.kafka import ApacheKafka

pytestmark = [
    pytest.mark.peer("kafka"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def kafka(certificates: Certificates) -> Iterator[ApacheKafka]:
    with secured_kafka(certificates) as kafka:
        DRIVERS[0]({"bootstrap.servers": kafka.bootstrap}, create)
        yield kafka


@pytest.fixture(params=DRIVERS[:2], ids=lambda driver: driver.__name__)
def drive(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    chosen: Callable[..., list[Any]] = request.param
    return chosen


async def create(cluster: Cluster) -> None:
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1, assignments=[], configs=[])
    await cluster.network.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    await cluster.topics(["t"])


async def log_ends(cluster: Cluster) -> list[int]:
    """Follows the leader, so that the login is good for every connection and not only the first."""
    topic = (await cluster.topics(["t"]))["t"]
    (node,) = {partition.leader for partition in topic.partitions.values()}
    asked = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(3)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)])
    answer = await cluster.network.ask(node, request)
    return [one.offset for one in answer.topics[0].partitions]


def settings(kafka: ApacheKafka, certificates: Certificates, listener: str, **more: Any) -> dict[str, Any]:
    protocol = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL", "CLEAR": "SASL_PLAINTEXT"}[listener]
    return {
        "bootstrap.servers": f"127.0.0.1:{kafka.ports[listener]}",
        "security.protocol": protocol,
        "ssl.ca.location": certificates.authority,
        "default.api.timeout.ms": 10_000,
    } | {name.replace("_", "."): value for name, value in more.items()}


def login(mechanism: str, password: str = PASSWORD) -> dict[str, Any]:
    return {"sasl_mechanism": mechanism, "sasl_username": "ann", "sasl_password": password}


def token(lifetime_s: float = 600) -> str:
    """An unsigned one, as Kafka takes it unless told otherwise."""
    now = time.time()
    # Issued a while ago: the broker's clock may be a blink behind, and a token of the future is none.
    parts = ({"alg": "none"}, {"sub": "ann", "iat": now - 60, "exp": now + lifetime_s})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def test_tls(kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]]) -> None:
    assert drive(settings(kafka, certificates, "TLS"), log_ends) == [[0, 0, 0]]


def test_mutual_tls(kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]]) -> None:
    shown = {
        "ssl_certificate_location": certificates.certificate("client"),
        "ssl_key_location": certificates.key("client"),
    }
    assert drive(settings(kafka, certificates, "MUTUAL", **shown), log_ends) == [[0, 0, 0]]


def test_mutual_tls_without_a_certificate_is_refused(
    kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    with pytest.raises(ClientError, match="certificate"):
        drive(settings(kafka, certificates, "MUTUAL", default_api_timeout_ms=2_000), log_ends)


@pytest.mark.parametrize("listener", ["LOGIN", "CLEAR"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logging_in_with_a_password(
    kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]], mechanism: str, listener: str
) -> None:
    assert drive(settings(kafka, certificates, listener, **login(mechanism)), log_ends) == [[0, 0, 0]]


@pytest.mark.parametrize("listener", ["LOGIN", "CLEAR"])
def test_logging_in_with_a_token(
    kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]], listener: str
) -> None:
    static = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token()}
    assert drive(settings(kafka, certificates, listener, **static), log_ends) == [[0, 0, 0]]
    given = settings(kafka, certificates, listener, sasl_mechanism="OAUTHBEARER")
    made = {**given, "oauth_cb": lambda _: (token(), time.time() + 600)}
    assert drive(made, log_ends) == [[0, 0, 0]]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_at_once_and_never_shown(
    kafka: ApacheKafka,
    certificates: Certificates,
    drive: Callable[..., list[Any]],
    mechanism: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = settings(kafka, certificates, "LOGIN", **login(mechanism, "wrong sesame"))
    with pytest.raises(AuthenticationError, match="the broker refuses the login") as failure:
        drive(wrong, log_ends)
    assert failure.value.tries == 1
    assert "sesame" not in str(failure.value)
    assert "sesame" not in caplog.text


def test_a_token_that_is_over_is_refused(
    kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    old = {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": token(-600)}
    with pytest.raises(AuthenticationError, match="refuses"):
        drive(settings(kafka, certificates, "CLEAR", **old), log_ends)


def test_a_login_outlives_its_session_on_one_connection(
    kafka: ApacheKafka, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    async def busy(cluster: Cluster) -> int:
        asked = 0
        deadline_ms = cluster.network.driver.monotonic_ms() + 2.2 * REAUTH_MS
        while cluster.network.driver.monotonic_ms() < deadline_ms:
            assert await log_ends(cluster) == [0, 0, 0]
            asked += 1
            await sleep(cluster.network.driver, 100)
        return asked

    (asked,) = drive(settings(kafka, certificates, "CLEAR", **login("SCRAM-SHA-512")), busy)
    assert asked > 3


def test_a_listener_without_logins_is_told_apart(kafka: ApacheKafka, drive: Callable[..., list[Any]]) -> None:
    given = {
        "bootstrap.servers": kafka.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "default.api.timeout.ms": 2_000,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": PASSWORD,
    }
    with pytest.raises(ClientError, match=r"security\.protocol|refuses the login") as failure:
        drive(given, log_ends)
    assert "sesame" not in str(failure.value)


# -- as users of Java's clients write them


MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}


def as_java(kafka: ApacheKafka, certificates: Certificates, listener: str, given: dict[str, str]) -> dict[str, str]:
    common = {
        "bootstrap.servers": f"127.0.0.1:{kafka.ports[listener]}",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.authority,
    }
    return dict(client_settings({**common, **given}, {}, {})[0].settings)


@pytest.mark.parametrize("mechanism", MODULES)
def test_a_login_by_a_jaas_text(kafka: ApacheKafka, certificates: Certificates, mechanism: str) -> None:
    text = jaas(MODULES[mechanism], username="ann", password=PASSWORD)
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism, "sasl.jaas.config": text}
    assert DRIVERS[0](as_java(kafka, certificates, "LOGIN", given), log_ends) == [[0, 0, 0]]


def test_a_token_beside_a_jaas_text(kafka: ApacheKafka, certificates: Certificates) -> None:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": jaas("oauthbearer.OAuthBearerLoginModule"),
        "sasl.oauthbearer.token": token(),
    }
    assert DRIVERS[0](as_java(kafka, certificates, "CLEAR", given), log_ends) == [[0, 0, 0]]


def test_pem_stores_of_java(kafka: ApacheKafka, certificates: Certificates) -> None:
    by_file = {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates.both("client")}
    as_text = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": Path(certificates.certificate("client")).read_text(),
        "ssl.keystore.key": Path(certificates.encrypted_client_key).read_text(),
        "ssl.key.password": KEY_PASSWORD,
    }
    for store in (by_file, as_text):
        given = as_java(kafka, certificates, "MUTUAL", {"security.protocol": "SSL", **store})
        assert DRIVERS[0](given, log_ends) == [[0, 0, 0]]
