"""TLS as the settings want it, and its failures in words."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Callable

from lowwater.client.config import Address, ClientConfig
from lowwater.client.errors import ClientError, ConnectError, DisconnectedError, TlsError
from lowwater.errors import ConfigError

_RIGHT_PORT = "is security.protocol right for this port?"


def tls_context(config: ClientConfig) -> ssl.SSLContext | None:
    """None when connections are not encrypted. ConfigError names the file or text that cannot be used."""
    if not config.uses_tls:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    verifies = config.bool("enable.ssl.certificate.verification")
    context.check_hostname = verifies and config.str("ssl.endpoint.identification.algorithm") == "https"
    context.verify_mode = ssl.CERT_REQUIRED if verifies else ssl.CERT_NONE
    _load_authorities(context, config)
    _load_certificate(context, config)
    ciphers = config.maybe_str("ssl.cipher.suites")
    if ciphers:
        _try("ssl.cipher.suites", lambda: context.set_ciphers(ciphers))
    return context


def _load_authorities(context: ssl.SSLContext, config: ClientConfig) -> None:
    location, text = config.maybe_str("ssl.ca.location"), config.maybe_str("ssl.ca.pem")
    if text:
        _try("ssl.ca.pem", lambda: context.load_verify_locations(cadata=text))
    if location and location != "probe":
        as_directory = os.path.isdir(location)
        _try(
            "ssl.ca.location",
            lambda: context.load_verify_locations(
                cafile=None if as_directory else location, capath=location if as_directory else None
            ),
        )
    elif not text:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)


def _load_certificate(context: ssl.SSLContext, config: ClientConfig) -> None:
    certificate, key = config.maybe_str("ssl.certificate.location"), config.maybe_str("ssl.key.location")
    certificate_text, key_text = config.maybe_str("ssl.certificate.pem"), config.maybe_str("ssl.key.pem")
    password = config.maybe_str("ssl.key.password") or ""
    if certificate is None and certificate_text is None:
        if key is not None or key_text is not None:
            raise ConfigError("ssl.key is given without a certificate; give ssl.certificate.location too")
        return
    # With a function, OpenSSL never asks at the terminal.
    if certificate is not None and key_text is None:
        chain = certificate
        _try("ssl.certificate.location", lambda: context.load_cert_chain(chain, key, password=lambda: password))
        return
    joined = (certificate_text or _read(certificate)) + "\n" + (key_text or _read(key))
    # Python reads certificates from files only: this one is ours alone, and gone at once.
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(joined)
        file.flush()
        _try("ssl.certificate.pem", lambda: context.load_cert_chain(file.name, password=lambda: password))


def _read(location: str | None) -> str:
    if location is None:
        return ""
    try:
        with open(location, encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{location} cannot be read: {error}") from None


def _try(name: str, load: Callable[[], object]) -> None:
    try:
        load()
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise ConfigError(f"{name} cannot be used: {error}") from None


def connect_failure(error: BaseException, address: Address) -> ClientError:
    """What a failure before the connection stood means for whoever asked."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"the certificate of {address} is not accepted: {error.verify_message}",
            advice="ssl.ca.location says whom to trust",
        )
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        return TlsError(f"no TLS with {address}: {error.reason or error}", advice=_RIGHT_PORT)
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError | ConnectionAbortedError):
        return ConnectError(f"{address} closed the connection while it was being opened", advice=_RIGHT_PORT)
    if isinstance(error, socket.gaierror):
        return ConnectError(f"{address}: the host name cannot be resolved: {error.strerror}")
    if isinstance(error, ConnectionRefusedError):
        return ConnectError(f"{address} refuses connections", advice="is the broker running?")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return ConnectError(f"{address} cannot be reached: {reason}")


def connection_failure(error: BaseException | None, address: Address) -> ClientError:
    """What the end of a connection that stood means."""
    if error is None:
        return DisconnectedError(f"{address} closed the connection")
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        # With TLS 1.3 a client's certificate is refused only when the client believes to be in.
        return TlsError(f"{address} ended TLS: {error.reason or error}", advice="does it want a client certificate?")
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return DisconnectedError(f"the connection to {address} broke: {reason}")
