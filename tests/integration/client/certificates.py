"""Certificates for tests, made anew each time by the openssl command: an authority, brokers, a client."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY_PASSWORD = "key sesame"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. `broker` names localhost, `stranger` another host; `client_key` is encrypted with KEY_PASSWORD."""

    folder: Path

    @property
    def authority(self) -> str:
        return str(self.folder / "ca.pem")

    def certificate(self, name: str) -> str:
        return str(self.folder / f"{name}.pem")

    def key(self, name: str) -> str:
        return str(self.folder / f"{name}.key")

    def both(self, name: str) -> str:
        """Key and certificate in one file, as Kafka reads them."""
        path = self.folder / f"{name}-both.pem"
        path.write_text(Path(self.key(name)).read_text() + Path(self.certificate(name)).read_text())
        return str(path)

    @property
    def encrypted_client_key(self) -> str:
        return str(self.folder / "client-encrypted.key")


def make(folder: Path) -> Certificates:
    """Everything that the tests of TLS need."""
    made = Certificates(folder)
    _authority(folder, "ca")
    _authority(folder, "other-ca")
    _signed(folder, "broker", "localhost", "DNS:localhost,IP:127.0.0.1")
    _signed(folder, "stranger", "elsewhere", "DNS:elsewhere.example")
    _signed(folder, "client", "client", "DNS:client")
    _run(folder, "pkcs8", "-topk8", "-in", "client.key", "-out", "client-encrypted.key",
         "-passout", f"pass:{KEY_PASSWORD}")  # fmt: skip
    return made


def _authority(folder: Path, name: str) -> None:
    _run(folder, "req", "-x509", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
         "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip


def _signed(folder: Path, name: str, common_name: str, alternatives: str) -> None:
    _run(folder, "req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={common_name}")
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternatives}\n")
    _run(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
         "-out", f"{name}.pem", "-days", "2", "-extfile", f"{name}.ext")  # fmt: skip


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _run(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)
