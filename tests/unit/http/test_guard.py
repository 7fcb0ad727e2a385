"""Who may ask."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from lowwater.http.guard import COOKIE, SESSION_MS, Guard
from lowwater.http.problem import Problem


class At:
    """A clock that moves when told."""

    now_ms = 1_000_000.0

    def __call__(self) -> float:
        return self.now_ms


def request(method: str = "GET", path: str = "/topics", **headers: str) -> Request:
    named = {"host": "localhost:8080", **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
        "server": ("127.0.0.1", 8080),
        "scheme": "http",
    }
    return Request(scope)


def refusal(guard: Guard, asked: Request) -> tuple[int, str]:
    with pytest.raises(Problem) as caught:
        guard.check(asked)
    return caught.value.status, caught.value.code


@pytest.fixture
def guard() -> Guard:
    return Guard("127.0.0.1", allowed=["Box.Example"], password=None, now_ms=At())


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7", "box.example:1"]
)
def test_it_is_served_under_its_own_names_and_under_addresses(guard: Guard, host: str) -> None:
    guard.check(request(host=host))


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example", ""])
def test_a_foreign_name_that_points_here_is_refused(guard: Guard, host: str) -> None:
    assert refusal(guard, request(host=host)) == (421, "WRONG_HOST")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_change_from_another_origin_is_refused(guard: Guard, method: str) -> None:
    assert refusal(guard, request(method, origin="https://evil.example")) == (403, "WRONG_ORIGIN")
    assert refusal(guard, request(method, origin="null")) == (403, "WRONG_ORIGIN")
    assert refusal(guard, request(method, sec_fetch_site="cross-site")) == (403, "WRONG_ORIGIN")
    guard.check(request(method, origin="http://localhost:8080", sec_fetch_site="same-origin"))
    guard.check(request(method))


def locked(now: Any = None) -> Guard:
    return Guard("0.0.0.0", password="tide", now_ms=now or At())


def test_with_a_password_everything_but_the_page_itself_needs_a_login() -> None:
    guard = locked()
    assert refusal(guard, request(path="/metrics")) == (401, "LOGIN_NEEDED")
    assert refusal(guard, request(path="/events")) == (401, "LOGIN_NEEDED")
    for path in ("/", "/healthz", "/login", "/static/app.js"):
        guard.check(request(path=path))
    guard.check(request(authorization="Bearer tide"))
    assert refusal(guard, request(authorization="Basic tide")) == (401, "LOGIN_NEEDED")


def test_a_session_ends_and_cannot_be_forged() -> None:
    now = At()
    guard = locked(now)
    session = guard.login("tide")
    guard.check(request(cookie=f"{COOKIE}={session}"))
    until, _, signature = session.partition(".")
    for forged in (f"{int(until) + 1}.{signature}", f"{until}.", until, "", f"{until}.{'0' * 64}"):
        assert refusal(guard, request(cookie=f"{COOKIE}={forged}")) == (401, "LOGIN_NEEDED")
    assert refusal(locked(now), request(cookie=f"{COOKIE}={session}")) == (401, "LOGIN_NEEDED")
    now.now_ms += SESSION_MS + 1
    assert refusal(guard, request(cookie=f"{COOKIE}={session}")) == (401, "LOGIN_NEEDED")


def test_a_wrong_password_opens_no_session() -> None:
    for guess in ("", "tid", "tide ", "TIDE"):
        with pytest.raises(Problem) as caught:
            locked().login(guess)
        assert caught.value.status == 401


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8080/healthz?", "localhost/static/", "127.0.0.1@evil.example", "[::1", "a b"]
)
def test_a_host_that_is_no_name_is_refused(host: str) -> None:
    assert refusal(locked(), request(path="/topics", host=host)) == (421, "WRONG_HOST")


def test_a_wrong_bearer_counts_as_a_guess() -> None:
    assert refusal(locked(), request(authorization="Bearer ebb")) == (401, "LOGIN_FAILED")
