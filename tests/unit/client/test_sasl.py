"""What is said in a login, and what a broker must not get away with."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from lowwater.client.config import ClientConfig
from lowwater.client.errors import AuthenticationError
from lowwater.client.sasl import log_in, parse_extensions, prepared, scram

NONCE = "rOprNGfwEbeRWgbNEkqO"  # of the example in RFC 7677, as all of the following
BOTH_NONCES = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={BOTH_NONCES},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = f"c=biws,r={BOTH_NONCES},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


class Server:
    """Answers with what it was given, and keeps what it was told."""

    def __init__(self, *answers: str | bytes) -> None:
        self.answers = [each.encode() if isinstance(each, str) else each for each in answers]
        self.told: list[bytes] = []

    async def talk(self, token: bytes) -> bytes:
        self.told.append(token)
        return self.answers.pop(0)


class FixedIds:
    def uuid(self) -> bytes:
        return bytes(range(1, 17))

    def boot_id(self) -> str:
        return ""


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


def finish(exchange: Coroutine[Any, Any, None]) -> None:
    with pytest.raises(StopIteration):
        exchange.send(None)


def fails(exchange: Coroutine[Any, Any, None]) -> str:
    with pytest.raises(AuthenticationError) as refusal:
        exchange.send(None)
    return str(refusal.value)


def configured(**settings: Any) -> ClientConfig:
    return ClientConfig({"security.protocol": "SASL_SSL", **{k.replace("_", "."): v for k, v in settings.items()}})


def test_plain_says_name_and_password() -> None:
    server = Server(b"")
    config = configured(sasl_mechanism="PLAIN", sasl_username="ann", sasl_password="pä ss")
    finish(log_in(config, FixedIds(), server.talk, at_once))
    assert server.told == ["\0ann\0pä ss".encode()]


def test_scram_says_what_the_rfc_says() -> None:
    server = Server(SERVER_FIRST, SERVER_FINAL)
    finish(scram("sha256", "user", "pencil", NONCE, server.talk, at_once))
    assert server.told == [f"n,,n=user,r={NONCE}".encode(), CLIENT_FINAL.encode()]


class ScramServer(Server):
    """The broker's half, from the same RFC but by the stored keys alone."""

    def __init__(self, digest: str, password: str, iterations: int = 4096) -> None:
        super().__init__()
        self.digest, self.salt, self.iterations = digest, b"salted", iterations
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), self.salt, iterations)
        self.stored_key = hashlib.new(digest, hmac.digest(salted, b"Client Key", digest)).digest()
        self.server_key = hmac.digest(salted, b"Server Key", digest)
        self.first = ""

    async def talk(self, token: bytes) -> bytes:
        self.told.append(token)
        if len(self.told) == 1:
            bare = token.decode().removeprefix("n,,")
            nonce = bare.partition("r=")[2]
            challenge = f"r={nonce}mine,s={base64.b64encode(self.salt).decode()},i={self.iterations}"
            self.first = f"{bare},{challenge}"
            return challenge.encode()
        without_proof, _, proof = token.decode().rpartition(",p=")
        signed = f"{self.first},{without_proof}".encode()
        signature = hmac.digest(self.stored_key, signed, self.digest)
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
        if hashlib.new(self.digest, key).digest() != self.stored_key:
            return b"e=invalid-proof"
        return b"v=" + base64.b64encode(hmac.digest(self.server_key, signed, self.digest))


@pytest.mark.parametrize(("mechanism", "digest"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
def test_scram_convinces_both_sides(mechanism: str, digest: str) -> None:
    config = configured(sasl_mechanism=mechanism, sasl_username="a,b=c", sasl_password="pencil")
    server = ScramServer(digest, "pencil", iterations=8192)
    finish(log_in(config, FixedIds(), server.talk, at_once))
    assert server.told[0].startswith(b"n,,n=a=2Cb=3Dc,r=")


def test_a_wrong_password_is_refused_without_being_quoted() -> None:
    message = fails(scram("sha256", "user", "crayon", NONCE, ScramServer("sha256", "pencil").talk, at_once))
    assert "the broker refuses the login: 'invalid-proof'" in message
    assert "crayon" not in message


@pytest.mark.parametrize(
    ("server_first", "problem"),
    [
        (SERVER_FIRST.replace(NONCE, "another" + NONCE), "nonce"),
        (SERVER_FIRST.replace(BOTH_NONCES, NONCE), "nonce"),
        (SERVER_FIRST.replace("i=4096", "i=4095"), "4095 iterations"),
        (SERVER_FIRST.replace("i=4096", "i=1000001"), "1000001 iterations"),
        (SERVER_FIRST.replace("i=4096", "i=" + "9" * 5000), "iteration count"),
        (SERVER_FIRST.replace("i=4096", "i=-4096"), "iteration count"),
        (SERVER_FIRST.replace("s=W22ZaJ0SNY7soEsUEjb6gQ==", "s="), "no salt"),
        (SERVER_FIRST.replace("s=W22", "s=!!!"), "base64"),
        ("m=new," + SERVER_FIRST, "extension"),
        ("e=unknown-user", "unknown-user"),
        (b"\xff\xfe", "not text"),
        ("", "nonce"),
    ],
)
def test_a_bad_challenge_ends_the_login_before_a_proof_is_sent(server_first: str | bytes, problem: str) -> None:
    server = Server(server_first)
    assert problem in fails(scram("sha256", "user", "pencil", NONCE, server.talk, at_once))
    assert len(server.told) == 1


@pytest.mark.parametrize("final", ["v=" + base64.b64encode(b"x" * 32).decode(), "v=", "", "v=!"])
def test_a_broker_that_does_not_know_the_password_is_found_out(final: str) -> None:
    fails(scram("sha256", "user", "pencil", NONCE, Server(SERVER_FIRST, final).talk, at_once))


@pytest.mark.parametrize(
    ("given", "prepared_text"), [("I\u00adX", "IX"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")]
)
def test_names_and_passwords_are_prepared_as_the_rfc_wants(given: str, prepared_text: str) -> None:
    assert prepared(given) == prepared_text


@pytest.mark.parametrize("text", ["bell\u0007é", "\u0627\u0031", "\u0627a\u0627"])
def test_what_cannot_be_prepared_is_refused(text: str) -> None:
    with pytest.raises(AuthenticationError):
        prepared(text)


def bearer(**settings: Any) -> ClientConfig:
    return configured(sasl_mechanism="OAUTHBEARER", **settings)


def test_a_static_token_is_sent_with_its_extensions() -> None:
    server = Server(b"")
    config = bearer(sasl_oauthbearer_token="tok.en", sasl_oauthbearer_extensions="logicalCluster=lkc-1, id=7")
    finish(log_in(config, FixedIds(), server.talk, at_once))
    assert server.told == [b"n,,\x01auth=Bearer tok.en\x01logicalCluster=lkc-1\x01id=7\x01\x01"]


def test_a_function_gives_the_token_each_time() -> None:
    tokens = iter([("first", 1.0), ("second", 2.0, "ann", {"id": "7"})])
    config = ClientConfig(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.config": "scope=x",
            "oauth_cb": lambda text: next(tokens) if text == "scope=x" else None,
        }
    )
    server = Server(b"", b"")
    finish(log_in(config, FixedIds(), server.talk, at_once))
    finish(log_in(config, FixedIds(), server.talk, at_once))
    assert server.told == [b"n,,\x01auth=Bearer first\x01\x01", b"n,,\x01auth=Bearer second\x01id=7\x01\x01"]


def test_a_refused_token_is_acknowledged_and_reported() -> None:
    server = Server(b'{"status":"invalid_token"}', b"")
    message = fails(log_in(bearer(sasl_oauthbearer_token="tok.en"), FixedIds(), server.talk, at_once))
    assert "invalid_token" in message
    assert "tok.en" not in message
    assert server.told[1] == b"\x01"


@pytest.mark.parametrize("token", ["", "a\x01auth=Bearer b", "naïve", "a\nb"])
def test_a_token_that_would_break_out_of_its_field_is_not_sent(token: str) -> None:
    server = Server()
    fails(log_in(bearer(sasl_oauthbearer_token=token), FixedIds(), server.talk, at_once))
    assert server.told == []


def test_what_a_token_function_raises_is_not_quoted() -> None:
    def failing(_: str) -> Any:
        raise RuntimeError("client_secret=hunter2")

    config = ClientConfig({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": failing})
    message = fails(log_in(config, FixedIds(), Server().talk, at_once))
    assert "RuntimeError" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("text", ["auth=x", "=x", "a b=c", "name"])
def test_what_is_not_an_extension_is_refused(text: str) -> None:
    with pytest.raises(AuthenticationError):
        parse_extensions(text)
