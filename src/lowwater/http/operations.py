"""What the API can do: each operation declared once, to be served, to check what is asked, and to be documented."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_to_bytes

from lowwater.http.problem import Problem
from lowwater.http.schema import Schema, problems

if TYPE_CHECKING:
    from lowwater.http.desk import Desk

NAME_MAX = 4096
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, taken apart and checked: names from the path, values from the query, and the body."""

    desk: Desk
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    who: str = ""


Handler = Callable[[Call], Awaitable[Any]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Operation:
    """`path` has names in braces. `answer` is the schema of what a 200 carries; None: nothing (204)."""

    method: str
    path: str
    summary: str
    handle: Handler
    tag: str
    answer: Schema | None
    query: Mapping[str, Schema]
    body: Schema | None
    statuses: tuple[int, ...]

    @property
    def segments(self) -> list[str]:
        return self.path.strip("/").split("/")

    @property
    def names(self) -> list[str]:
        return [one[1:-1] for one in self.segments if one.startswith("{")]


OPERATIONS: list[Operation] = []


def operation(
    method: str,
    path: str,
    summary: str,
    *,
    tag: str,
    answer: Schema | None,
    query: Mapping[str, Schema] | None = None,
    body: Schema | None = None,
    statuses: tuple[int, ...] = (),
) -> Callable[[H], H]:
    """Declare what a function serves. `statuses` are the refusals it may answer with, those of every call aside."""

    def declare(handle: H) -> H:
        OPERATIONS.append(Operation(method, path, summary, handle, tag, answer, query or {}, body, statuses))
        return handle

    return declare


def find(method: str, raw_path: bytes) -> tuple[Operation, dict[str, str]]:
    """Names may hold anything, slashes too, so the path is split before its segments are decoded."""
    segments = raw_path.strip(b"/").split(b"/")
    fitting = [(one, names) for one in OPERATIONS if (names := _fits(one, segments)) is not None]
    # A fixed word wins over a name in its place.
    fitting.sort(key=lambda each: len(each[1]))
    for one, names in fitting:
        if one.method == method or (method == "HEAD" and one.method == "GET"):
            return one, names
    if fitting:
        allowed = sorted({one.method for one, _ in fitting})
        raise Problem(405, "METHOD_NOT_ALLOWED", f"{method} is not possible here", {"Allow": ", ".join(allowed)})
    raise Problem(404, "NOT_FOUND", "there is nothing at this address; /openapi.json lists what there is")


def _fits(one: Operation, segments: list[bytes]) -> dict[str, str] | None:
    wanted = one.segments
    if len(wanted) != len(segments):
        return None
    names: dict[str, str] = {}
    for want, have in zip(wanted, segments, strict=True):
        if not want.startswith("{"):
            if want.encode() != have:
                return None
        else:
            names[want[1:-1]] = _decoded(have)
    if not TOPIC.fullmatch(names.get("topic", "topic")):
        raise Problem(404, "NOT_FOUND", f"no topic can have the name {names['topic']!r}")
    return names


def _decoded(segment: bytes) -> str:
    try:
        name = unquote_to_bytes(segment).decode("utf-8")
    except UnicodeDecodeError:
        raise Problem(400, "BAD_NAME", "a name in the address is not UTF-8") from None
    if not name or len(name) > NAME_MAX:
        raise Problem(400, "BAD_NAME", f"a name in the address is empty or longer than {NAME_MAX} characters")
    return name


def read_query(one: Operation, given: list[tuple[str, str]]) -> dict[str, Any]:
    """Values of declared parameters, turned into their types; what is not given has its default."""
    values: dict[str, Any] = {name: schema.get("default") for name, schema in one.query.items()}
    seen: set[str] = set()
    for name, text in given:
        if name not in one.query:
            known = ", ".join(one.query) or "none"
            raise Problem(400, "BAD_QUERY", f"the parameter {name!r} is not known here; known: {known}")
        if name in seen:
            raise Problem(400, "BAD_QUERY", f"the parameter {name!r} is given twice")
        seen.add(name)
        values[name] = _typed(one.query[name], name, text)
        for what in problems(one.query[name], values[name], name):
            raise Problem(400, "BAD_QUERY", what)
    for name, schema in one.query.items():
        if schema.get("x-required") and name not in seen:
            raise Problem(400, "BAD_QUERY", f"the parameter {name!r} is needed")
    return values


def _typed(schema: Schema, name: str, text: str) -> Any:
    kind = schema["type"]
    if kind == "integer":
        try:
            if text.strip() == text and "_" not in text:
                return int(text)
        except ValueError:
            pass
        raise Problem(400, "BAD_QUERY", f"{name} must be an integer")
    if kind == "boolean":
        if text not in ("true", "false"):
            raise Problem(400, "BAD_QUERY", f"{name} must be true or false")
        return text == "true"
    return text


def partition_of(call: Call) -> int:
    """The partition number in the address."""
    text = call.path["partition"]
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) < 2**31):
        raise Problem(400, "BAD_NAME", f"a partition is a number from 0 on, not {text!r}")
    return int(text)
