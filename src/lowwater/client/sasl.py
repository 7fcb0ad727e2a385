"""Logging in: what is said in each SASL mechanism. `talk` sends one token and gives the broker's answer."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import stringprep
import unicodedata
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from lowwater.client.config import ClientConfig
from lowwater.client.errors import AuthenticationError
from lowwater.ports import Ids

T = TypeVar("T")

Talk: TypeAlias = Callable[[bytes], Awaitable[bytes]]
Elsewhere: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Runs slow work where it holds up nobody."""

# Below, a stolen exchange is soon broken; above, a broker could keep its clients busy for ever.
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 1_000_000
_DIGESTS = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_EXTENSION = re.compile(r"([A-Za-z]+)=([\x20-\x7e\t\r\n]+)")


def log_in(config: ClientConfig, ids: Ids, talk: Talk, elsewhere: Elsewhere) -> Coroutine[Any, Any, None]:
    """The exchange of the configured mechanism; AuthenticationError when either side is not convinced."""
    mechanism = config.str("sasl.mechanism")
    if mechanism == "OAUTHBEARER":
        return _bearer(config, talk, elsewhere)
    username, password = config.str("sasl.username"), config.str("sasl.password")
    if mechanism == "PLAIN":
        return _plain(username, password, talk)
    nonce = base64.b64encode(ids.uuid() + ids.uuid()).decode()
    return scram(_DIGESTS[mechanism], username, password, nonce, talk, elsewhere)


async def _plain(username: str, password: str, talk: Talk) -> None:
    """RFC 4616."""
    await talk(b"\0".join((b"", username.encode(), password.encode())))


async def scram(digest: str, username: str, password: str, nonce: str, talk: Talk, elsewhere: Elsewhere) -> None:
    """RFC 5802, without channel binding: Kafka's brokers have none."""
    name = prepared(username).replace("=", "=3D").replace(",", "=2C")
    client_first = f"n={name},r={nonce}"
    server_first = _text(await talk(f"n,,{client_first}".encode()))
    their_nonce, salt, iterations = _challenge(server_first, nonce)
    secret = prepared(password).encode()
    salted: bytes = await elsewhere(lambda: hashlib.pbkdf2_hmac(digest, secret, salt, iterations))
    client_final = f"c=biws,r={their_nonce}"
    signed = f"{client_first},{server_first},{client_final}".encode()
    proof = _proof(digest, salted, signed)
    answer = _fields(_text(await talk(f"{client_final},p={base64.b64encode(proof).decode()}".encode())))
    if "e" in answer:
        raise AuthenticationError(f"the broker refuses the login: {answer['e']!r}")
    server_key = hmac.digest(salted, b"Server Key", digest)
    if not hmac.compare_digest(hmac.digest(server_key, signed, digest), _decoded(answer.get("v", ""))):
        raise AuthenticationError("the broker does not know the password: its signature is wrong")


def _challenge(server_first: str, nonce: str) -> tuple[str, bytes, int]:
    """(nonce of both, salt, iterations)."""
    fields = _fields(server_first)
    if "e" in fields:
        raise AuthenticationError(f"the broker refuses the login: {fields['e']!r}")
    if "m" in fields:
        raise AuthenticationError("the broker asks for a SCRAM extension that is not known here")
    theirs, salt, count = fields.get("r", ""), _decoded(fields.get("s", "")), fields.get("i", "")
    if not theirs.startswith(nonce) or theirs == nonce:
        raise AuthenticationError("the broker answers to another login: its nonce does not begin with ours")
    if not salt or not (count.isascii() and count.isdigit() and len(count) <= 10):
        raise AuthenticationError("the broker's challenge has no salt or no iteration count")
    if not ITERATIONS_MIN <= int(count) <= ITERATIONS_MAX:
        raise AuthenticationError(
            f"the broker asks for {int(count)} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
        )
    return theirs, salt, int(count)


def _proof(digest: str, salted: bytes, signed: bytes) -> bytes:
    client_key = hmac.digest(salted, b"Client Key", digest)
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
    return bytes(ours ^ theirs for ours, theirs in zip(client_key, signature, strict=True))


async def _bearer(config: ClientConfig, talk: Talk, elsewhere: Elsewhere) -> None:
    """RFC 7628, as KIP-255 and KIP-342 use it."""
    token, extensions = await _token(config, elsewhere)
    parts = ["n,,", f"auth=Bearer {token}", *(f"{name}={value}" for name, value in extensions.items())]
    problem = await talk(("\x01".join(parts) + "\x01\x01").encode())
    if problem:
        # The broker says why it will refuse, and refuses once that was acknowledged.
        await talk(b"\x01")
        raise AuthenticationError(f"the broker refuses the token: {_text(problem)[:200]!r}")


async def _token(config: ClientConfig, elsewhere: Elsewhere) -> tuple[str, dict[str, str]]:
    extensions = parse_extensions(config.str("sasl.oauthbearer.extensions"))
    callback = config.oauth_callback
    if callback is None:
        return _checked_token(config.str("sasl.oauthbearer.token")), extensions
    try:
        given = await elsewhere(lambda: callback(config.str("sasl.oauthbearer.config")))
    except Exception as error:
        # Only its kind: what such a function raises may quote what it sent.
        raise AuthenticationError(f"oauth_cb failed with {type(error).__name__}") from None
    if isinstance(given, str):
        return _checked_token(given), extensions
    if not isinstance(given, tuple) or len(given) < 2:
        raise AuthenticationError("oauth_cb has to give (token, when it ends in seconds since the epoch)")
    if len(given) > 3 and given[3]:
        extensions = extensions | dict(_extension(f"{name}={value}") for name, value in dict(given[3]).items())
    return _checked_token(str(given[0])), extensions


def _checked_token(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable():
        raise AuthenticationError("the token is empty, or has characters that a bearer token cannot have")
    return token


def parse_extensions(text: str) -> dict[str, str]:
    """`name=value,name=value`."""
    return dict(_extension(part.strip()) for part in text.split(",") if part.strip())


def _extension(part: str) -> tuple[str, str]:
    match = _EXTENSION.fullmatch(part)
    if match is None or match[1] == "auth":
        raise AuthenticationError(f"{part!r} is not an extension of OAUTHBEARER, which is name=value")
    return match[1], match[2]


def prepared(text: str) -> str:
    """SASLprep (RFC 4013), as SCRAM wants names and passwords; AuthenticationError for what it forbids."""
    if text.isascii() and text.isprintable():
        return text
    mapped = "".join(
        " " if stringprep.in_table_c12(each) else each for each in text if not stringprep.in_table_b1(each)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    if any(forbids(each) for each in normal for forbids in _PROHIBITED) or not _is_one_way(normal):
        raise AuthenticationError("the user name or password has characters that SCRAM does not allow")
    return normal


_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _is_one_way(text: str) -> bool:
    """Text from right to left has no left-to-right letters, and begins and ends with its own (RFC 3454, 6)."""
    rightward = [stringprep.in_table_d1(each) for each in text]
    if not any(rightward):
        return True
    return rightward[0] and rightward[-1] and not any(map(stringprep.in_table_d2, text))


def _fields(message: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in message.split(","))
    return {name: value for name, equals, value in pairs if equals}


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationError("the broker's answer is not text") from None


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise AuthenticationError("the broker's answer is not base64") from None
