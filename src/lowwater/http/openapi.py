"""The OpenAPI document, made of the declared operations."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus
from typing import Any

from lowwater import __version__
from lowwater.http.operations import NAME_MAX, OPERATIONS, TOPIC, Operation
from lowwater.http.problem import PROBLEM

_ALWAYS = (400, 401, 403, 405, 421, 500, 502, 503)
_WITH_BODY = (408, 413, 415, 422)
_NOT_JSON = {"/metrics": "text/plain", "/events": "text/event-stream"}
_NAMES = {
    "group": {"type": "string", "minLength": 1, "maxLength": NAME_MAX},
    "topic": {"type": "string", "pattern": f"^{TOPIC.pattern}$"},
    "partition": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
}


@cache
def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method.lower()] = _described(one)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lowwater",
            "version": __version__,
            "description": "Groups, offsets, lag, topics and records of a Kafka cluster.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "security": [{}, {"password": []}],
        "components": {
            "schemas": {"Problem": PROBLEM},
            "securitySchemes": {"password": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(one: Operation) -> dict[str, Any]:
    told: dict[str, Any] = {
        "summary": one.summary,
        "operationId": f"{one.handle.__module__.rpartition('.')[2]}_{one.handle.__name__}",
        "tags": [one.tag],
        "parameters": [*(_in_path(name) for name in one.names), *(_in_query(*each) for each in one.query.items())],
        "responses": _responses(one),
    }
    if one.body is not None:
        told["requestBody"] = {"required": True, "content": {"application/json": {"schema": one.body}}}
    return told


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _NAMES[name]}


def _in_query(name: str, schema: Any) -> dict[str, Any]:
    told = {key: value for key, value in schema.items() if key not in ("description", "x-required")}
    return {
        "name": name,
        "in": "query",
        "required": bool(schema.get("x-required")),
        "description": schema.get("description", ""),
        "schema": told,
    }


def _responses(one: Operation) -> dict[str, Any]:
    if one.answer is None:
        found: dict[str, Any] = {"204": {"description": "Done."}}
    else:
        kind = _NOT_JSON.get(one.path, "application/json")
        found = {"200": {"description": "The answer.", "content": {kind: {"schema": one.answer}}}}
    problem = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status in sorted(
        {*_ALWAYS, *one.statuses, *((404,) if one.names else ()), *(_WITH_BODY if one.body is not None else ())}
    ):
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": problem}
    return found
