"""Who may ask: the names this server goes by, where a change may come from, and the login beyond loopback."""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterable
from hashlib import sha256

from starlette.requests import Request

from lowwater.http.problem import Problem

COOKIE = "lowwater"
WRONG_PASSWORD = "LOGIN_FAILED"
SESSION_MS = 12 * 3600 * 1000
OPEN_PATHS = frozenset({"/healthz", "/login", "/"})
_HOST = re.compile(r"(\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(:\d{1,5})?")
READS = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Checks every request before anything else looks at it."""

    def __init__(self, host: str, *, allowed: Iterable[str] = (), password: str | None, now_ms: Callable[[], float]):
        self._names = {"localhost", *(name.lower() for name in allowed)}
        if not _is_address(host):
            self._names.add(host.lower())
        self._password = password
        self._key = secrets.token_bytes(32)
        self._now_ms = now_ms

    @property
    def needs_login(self) -> bool:
        return self._password is not None

    def check(self, request: Request) -> None:
        """Problem when this request is not to be served."""
        self._check_host(request)
        if request.method not in READS:
            self._check_origin(request)
        path = request.scope["path"]  # what is routed; a URL would be made with the caller's Host
        if self.needs_login and path not in OPEN_PATHS and not path.startswith("/static/"):
            self._check_login(request)

    def _check_host(self, request: Request) -> None:
        """A page elsewhere can let its own name point here, and then read what we answer: only our names are served."""
        told = _HOST.fullmatch(request.headers.get("host", ""))
        host = (told["address"] or told["name"]) if told else ""
        # An address is no name that could be made to point here.
        if host.lower() not in self._names and not _is_address(host):
            raise Problem(
                421, "WRONG_HOST", f"this server does not go by the name {host!r}; start it with --allow-host to add it"
            )

    def _check_origin(self, request: Request) -> None:
        origin = request.headers.get("origin")
        own = {f"{scheme}://{request.headers.get('host', '')}".lower() for scheme in ("http", "https")}
        if origin is not None and origin.lower() not in own:
            raise Problem(403, "WRONG_ORIGIN", "a page of another origin may not change anything here")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Problem(403, "WRONG_ORIGIN", "a page of another site may not change anything here")

    # ---- login

    def _check_login(self, request: Request) -> None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            self._require_password(given.strip())
            return
        if not self._is_session(request.cookies.get(COOKIE, "")):
            raise Problem(401, "LOGIN_NEEDED", "log in first", {"WWW-Authenticate": "Bearer"})

    def login(self, password: str) -> str:
        """A session for who knows the password."""
        self._require_password(password)
        until = str(int(self._now_ms() + SESSION_MS))
        return f"{until}.{self._sign(until)}"

    def _require_password(self, given: str) -> None:
        if not self._is_password(given):
            raise Problem(401, WRONG_PASSWORD, "that is not the password", {"WWW-Authenticate": "Bearer"})

    def _is_password(self, given: str) -> bool:
        # Digests are compared: the time tells neither length nor beginning.
        wanted = sha256((self._password or "").encode()).digest()
        return hmac.compare_digest(wanted, sha256(given.encode()).digest()) and self._password is not None

    def _is_session(self, cookie: str) -> bool:
        until, _, signature = cookie.partition(".")
        if not hmac.compare_digest(self._sign(until).encode(), signature.encode()):
            return False
        return int(until) > self._now_ms()

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), sha256).hexdigest()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
