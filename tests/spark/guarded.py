"""A broker behind mutual TLS, and what its clients are told: settings of Java's, with secrets in them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from pathlib import Path

from tests.integration.client.certificates import KEY_PASSWORD, Certificates, make
from tests.integration.client.tls_front import TlsFront
from tests.spark.writing import Topics

from lowwater.testing import Broker


class Guarded:
    """`topics` writes and reads there by another client."""

    def __init__(self, bootstrap: str, certificates: Certificates) -> None:
        self.bootstrap = bootstrap
        self.certificates = certificates
        self.topics = Topics(
            bootstrap,
            {
                "security.protocol": "ssl",
                "ssl.ca.location": certificates.authority,
                "ssl.certificate.location": certificates.certificate("client"),
                "ssl.key.location": certificates.key("client"),
            },
        )

    @property
    def by_file(self) -> dict[str, str]:
        return {
            **self._common,
            "kafka.ssl.truststore.location": self.certificates.authority,
            "kafka.ssl.keystore.location": self.certificates.both("client"),
        }

    @property
    def as_text(self) -> dict[str, str]:
        return {
            **self._common,
            "kafka.ssl.truststore.certificates": Path(self.certificates.authority).read_text(),
            "kafka.ssl.keystore.certificate.chain": Path(self.certificates.certificate("client")).read_text(),
            "kafka.ssl.keystore.key": Path(self.certificates.encrypted_client_key).read_text(),
            "kafka.ssl.key.password": KEY_PASSWORD,
        }

    @property
    def secrets(self) -> list[str]:
        """What must not be found anywhere: passwords, and a line of the private key."""
        return [KEY_PASSWORD, Path(self.certificates.encrypted_client_key).read_text().splitlines()[2]]

    @property
    def _common(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.keystore.type": "PEM",
        }


@contextlib.contextmanager
def guarded(folder: Path) -> Iterator[Guarded]:
    certificates = make(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate("broker"), certificates.key("broker"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.authority)
    front = TlsFront(context)
    with Broker({"advertised.listeners": f"PLAINTEXT://localhost:{front.port}"}) as broker:
        front.forward_to(broker.port)
        made = Guarded(f"localhost:{front.port}", certificates)
        try:
            yield made
        finally:
            made.topics.close()
            front.close()
