"""TLS with both drivers: who is trusted, by which name, and what is said when it fails."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.client.certificates import KEY_PASSWORD, Certificates, make
from tests.integration.client.drivers import DRIVERS
from tests.integration.client.test_drivers import ROWS, fetch, log_end
from tests.integration.client.tls_front import TlsFront

from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError, TlsError
from lowwater.client.tls import tls_context
from lowwater.errors import ConfigError
from lowwater.testing import Broker

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


def server_side(certificates: Certificates, name: str = "broker") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate(name), certificates.key(name))
    return context


class Fronts:
    """Brokers behind TLS, each once: by the name of its certificate, with or without mutual TLS."""

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self._running: dict[tuple[str, bool, str], tuple[TlsFront, Broker]] = {}

    def at(self, name: str = "broker", *, mutual: bool = False, newest: str = "TLSv1_3") -> TlsFront:
        key = (name, mutual, newest)
        if key not in self._running:
            context = server_side(self._certificates, name)
            context.maximum_version = ssl.TLSVersion[newest]
            if mutual:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(self._certificates.authority)
            front = TlsFront(context)
            broker = Broker({"advertised.listeners": f"PLAINTEXT://localhost:{front.port}"}).start()
            broker.fill("t", 0, next=ROWS)
            front.forward_to(broker.port)
            self._running[key] = front, broker
        return self._running[key][0]

    def close(self) -> None:
        for front, broker in self._running.values():
            front.close()
            broker.close()


@pytest.fixture(scope="module")
def fronts(certificates: Certificates) -> Iterator[Fronts]:
    fronts = Fronts(certificates)
    yield fronts
    fronts.close()


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
def drive(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    chosen: Callable[..., list[Any]] = request.param
    return chosen


def tls(front: TlsFront, certificates: Certificates, **settings: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"localhost:{front.port}",
        "security.protocol": "SSL",
        "ssl.ca.location": certificates.authority,
        "broker.address.family": "v4",
        "default.api.timeout.ms": 5_000,
    } | {name.replace("_", "."): value for name, value in settings.items()}


@pytest.mark.parametrize("newest", ["TLSv1_2", "TLSv1_3"])
def test_everything_goes_through_tls(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]], newest: str
) -> None:
    front = fronts.at(newest=newest)
    end, whole, again = drive(tls(front, certificates), log_end, fetch, fetch)
    assert end == ROWS
    assert len(whole) > 500_000
    assert whole == again
    assert front.versions[-1] == newest.replace("_", ".")


def test_an_authority_may_be_given_as_text(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    settings = tls(fronts.at(), certificates, ssl_ca_pem=Path(certificates.authority).read_text())
    del settings["ssl.ca.location"]
    assert drive(settings, log_end) == [ROWS]


def test_a_certificate_of_an_unknown_authority_is_refused(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    settings = tls(fronts.at(), certificates, ssl_ca_location=certificates.certificate("other-ca"))
    with pytest.raises(TlsError, match=r"the certificate of localhost:\d+ is not accepted: .*ssl\.ca\.location"):
        drive(settings, log_end)


def test_a_certificate_of_another_host_is_refused_unless_told_otherwise(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    front = fronts.at("stranger")
    with pytest.raises(TlsError, match="Hostname mismatch"):
        drive(tls(front, certificates), log_end)
    assert drive(tls(front, certificates, ssl_endpoint_identification_algorithm="none"), log_end) == [ROWS]


def test_certificates_are_not_looked_at_when_told_so(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    settings = tls(fronts.at("stranger"), certificates, enable_ssl_certificate_verification=False)
    del settings["ssl.ca.location"]
    assert drive(settings, log_end) == [ROWS]


def test_a_client_shows_its_certificate(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    shown = {
        "ssl_certificate_location": certificates.certificate("client"),
        "ssl_key_location": certificates.encrypted_client_key,
        "ssl_key_password": KEY_PASSWORD,
    }
    as_text = {
        "ssl_certificate_pem": Path(certificates.certificate("client")).read_text(),
        "ssl_key_pem": Path(certificates.key("client")).read_text(),
    }
    for given in (shown, as_text):
        assert drive(tls(fronts.at(mutual=True), certificates, **given), log_end) == [ROWS]


def test_a_client_without_a_certificate_is_told_that_one_is_wanted(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    with pytest.raises(ClientError, match=r"does it want a client certificate|is security\.protocol"):
        drive(tls(fronts.at(mutual=True), certificates, default_api_timeout_ms=500), log_end)


def test_a_port_without_tls_is_told_apart(certificates: Certificates, drive: Callable[..., list[Any]]) -> None:
    with Broker() as broker:
        settings = {
            "bootstrap.servers": f"localhost:{broker.port}",
            "security.protocol": "SSL",
            "ssl.ca.location": certificates.authority,
            "broker.address.family": "v4",
            "default.api.timeout.ms": 500,
        }
        with pytest.raises(ClientError, match=r"localhost:\d+ .*is security\.protocol right for this port\?"):
            drive(settings, _topics)


def test_a_port_with_tls_is_told_apart(
    fronts: Fronts, certificates: Certificates, drive: Callable[..., list[Any]]
) -> None:
    settings = {
        "bootstrap.servers": f"localhost:{fronts.at().port}",
        "broker.address.family": "v4",
        "default.api.timeout.ms": 500,
    }
    with pytest.raises(ClientError, match=r"is security\.protocol=PLAINTEXT right for this port\?"):
        drive(settings, _topics)


async def _topics(cluster: Cluster) -> Any:
    return await cluster.all_topics()


# ---- what can be said without a connection


def context_of(**settings: Any) -> ssl.SSLContext:
    given = {"security.protocol": "SSL"} | {name.replace("_", "."): value for name, value in settings.items()}
    context = tls_context(ClientConfig(given))
    assert context is not None
    return context


def test_old_versions_of_tls_are_not_spoken_and_names_are_checked() -> None:
    context = context_of()
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_no_context_without_tls() -> None:
    assert tls_context(ClientConfig({})) is None


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ssl_ca_location": "/no/such/file"}, "ssl.ca.location"),
        ({"ssl_ca_pem": "nonsense"}, "ssl.ca.pem"),
        ({"ssl_certificate_location": "/no/such/file"}, "ssl.certificate.location"),
        ({"ssl_key_location": "/no/such/file"}, "without a certificate"),
        ({"ssl_certificate_pem": "nonsense", "ssl_key_pem": "secret nonsense"}, "ssl.certificate.pem"),
        ({"ssl_cipher_suites": "NO-SUCH-SUITE"}, "ssl.cipher.suites"),
    ],
)
def test_what_cannot_be_used_is_named(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as failure:
        context_of(**settings)
    assert "secret" not in str(failure.value)


@pytest.mark.parametrize("password", [None, "wrong sesame"])
def test_a_key_that_stays_locked_is_an_error_and_never_a_question_at_the_terminal(
    certificates: Certificates, password: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.certificate\.location") as failure:
        context_of(
            ssl_certificate_location=certificates.certificate("client"),
            ssl_key_location=certificates.encrypted_client_key,
            ssl_key_password=password,
        )
    assert "wrong sesame" not in str(failure.value)
