"""Files of settings and -X with librdkafka's names: kcat and `lowwater cat` reach the same broker with them."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.cats.runs import cat, kcat
from tests.integration.client.certificates import KEY_PASSWORD, Certificates, make
from tests.integration.client.tls_front import TlsFront

from lowwater.testing import Broker

pytestmark = [
    pytest.mark.peer("kcat"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
    pytest.mark.only_against("lowwater"),
]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def address(certificates: Certificates) -> Iterator[str]:
    """A broker behind mutual TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate("broker"), certificates.key("broker"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.authority)
    front = TlsFront(context)
    with Broker({"advertised.listeners": f"PLAINTEXT://localhost:{front.port}"}) as broker:
        broker.fill("t", next=3)
        front.forward_to(broker.port)
        yield f"localhost:{front.port}"
        front.close()


@pytest.fixture
def file(certificates: Certificates, address: str, tmp_path: Path) -> str:
    path = tmp_path / "settings"
    path.write_text(
        f"""
        # as kcat's manual has it
        bootstrap.servers={address}
        security.protocol=ssl
        ssl.ca.location={certificates.authority}
        ssl.certificate.location={certificates.certificate("client")}
        ssl.key.location={certificates.encrypted_client_key}
        ssl.key.password={KEY_PASSWORD}
        topic.auto.offset.reset=earliest
        """
    )
    return str(path)


def test_a_file_of_settings(file: str) -> None:
    for line in (["-C", "-t", "t", "-e"], ["-L", "-t", "t"], ["-G", "tls", "t", "-e", "-o", "beginning"]):
        assert cat("-F", file, *line) == kcat("-F", file, *line)


def test_what_a_line_says_wins_over_the_file(file: str) -> None:
    line = ("-C", "-F", file, "-X", "auto.offset.reset=error", "-t", "t", "-o", "99", "-e")
    assert cat(*line).code == kcat(*line).code == 1


def test_a_broker_that_is_not_trusted_is_refused(address: str) -> None:
    line = ("-L", "-b", address, "-X", "security.protocol=ssl", "-m1")
    mine, theirs = cat(*line), kcat(*line)
    assert mine[:2] == (1, b"")
    assert theirs.code != 0, "kcat ends with 1, or crashes in its TLS library on the way out"
    assert "certificate" in " ".join(mine.err)
