"""The ASGI application: guards, finds the operation, checks what is asked, answers as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lowwater.client.errors import ClientError
from lowwater.errors import ConfigError
from lowwater.http import assets, groups, health, offsets, resets, topics
from lowwater.http.desk import Desk
from lowwater.http.guard import COOKIE, HEADERS, SESSION_MS, WRONG_PASSWORD, Guard
from lowwater.http.operations import Call, find, read_query
from lowwater.http.problem import Problem, of_client
from lowwater.http.schema import problems

logger = logging.getLogger(__name__)

BODY_BYTES_MAX = 1 << 20
BODY_S = 30
FAILED_LOGIN_S = 1.0
SERVED = (groups, health, offsets, resets, topics)
"""Modules whose operations are served; named so that they are loaded."""


class App:
    """One per process; `desk` is everything the operations need."""

    def __init__(self, desk: Desk, guard: Guard) -> None:
        self._desk = desk
        self._guard = guard
        self._guessing = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            request = Request(scope, receive)
            response = await self._respond(request)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            response.headers.setdefault("Cache-Control", "no-store")
            await response(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self._desk.open()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._desk.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, request: Request) -> Response:
        try:
            self._guard.check(request)
            return await self._serve(request)
        except Problem as problem:
            if problem.code == WRONG_PASSWORD:
                async with self._guessing:  # one guess after the other, and each takes its time
                    await asyncio.sleep(FAILED_LOGIN_S)
            return _json(problem.as_json(), problem.status, problem.headers)
        except ClientError as error:
            told = of_client(error)
            return _json(told.as_json(), told.status)
        except ConfigError as error:
            return _json(Problem(422, "BAD_VALUE", str(error)).as_json(), 422)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:
            logger.exception("a request failed")
            return _json(Problem(500, "INTERNAL_ERROR", "this failed; the log says more").as_json(), 500)

    async def _serve(self, request: Request) -> Response:
        path = request.scope["path"]
        if request.method in ("GET", "HEAD") and (asset := assets.find(path)) is not None:
            return asset
        if path == "/login":
            return await self._login(request)
        operation, names = find(request.method, request.scope["raw_path"])
        query = read_query(operation, request.query_params.multi_items())
        body = None
        if operation.body is not None:
            body = await _body(request)
            for what in problems(operation.body, body):
                raise Problem(422, "BAD_BODY", what)
        who = request.client.host if request.client else ""
        answer = await operation.handle(Call(self._desk, names, query, body, who))
        if isinstance(answer, Response):
            return answer
        return Response(status_code=204) if operation.answer is None else _json(answer)

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            raise Problem(405, "METHOD_NOT_ALLOWED", "a login is a POST", {"Allow": "POST"})
        body = await _body(request)
        password = body.get("password") if isinstance(body, dict) else None
        if not isinstance(password, str):
            raise Problem(422, "BAD_BODY", "the body lacks 'password'")
        session = self._guard.login(password)
        response = Response(status_code=204)
        response.set_cookie(COOKIE, session, max_age=SESSION_MS // 1000, httponly=True, samesite="strict", path="/")
        return response


async def _body(request: Request) -> Any:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "BAD_CONTENT_TYPE", "the body must be application/json")
    try:
        received = await asyncio.wait_for(_received(request), BODY_S)
        body = json.loads(received)
        json.dumps(body, ensure_ascii=False).encode()  # escapes can make half of a character
    except TimeoutError:
        raise Problem(408, "BODY_TOO_SLOW", f"the body did not come within {BODY_S} s") from None
    except (ValueError, RecursionError):
        raise Problem(400, "BAD_BODY", "the body is not JSON") from None
    return body


async def _received(request: Request) -> bytes:
    received = bytearray()
    async for piece in request.stream():
        received += piece
        if len(received) > BODY_BYTES_MAX:
            raise Problem(413, "BODY_TOO_LARGE", f"a body may have {BODY_BYTES_MAX} bytes")
    return bytes(received)


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    content = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate can stand in what brokers tell; as an escape it is at least JSON.
    data = content.encode("utf-8", "surrogatepass") if content.isascii() else _encoded(value, content)
    return Response(data, status, headers, media_type="application/json")


def _encoded(value: Any, content: str) -> bytes:
    try:
        return content.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
