"""Errors as answers: a status, a name that programs can compare, and words for people."""

from __future__ import annotations

from typing import Any

from lowwater.client.errors import (
    AuthenticationError,
    BrokerError,
    ClientError,
    ConnectError,
    DisconnectedError,
    GroupError,
    RequestTimeoutError,
    UnknownTopicError,
)
from lowwater.errors import ErrorCode

PROBLEM = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
}

# A topic of an impossible name is one that is not there.
_MISSING = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INVALID_TOPIC_EXCEPTION)
_BUSY = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
_WRONG = (ErrorCode.INVALID_GROUP_ID, ErrorCode.OFFSET_METADATA_TOO_LARGE)
_NAMES = {int(one): one.name for one in ErrorCode}
_OUT_OF_REACH = (ConnectError, DisconnectedError, RequestTimeoutError)


class Problem(Exception):  # noqa: N818  (what the caller is told)
    """Ends a call. `headers` go with the answer."""

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}

    def as_json(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": str(self)}}


def missing(what: str) -> Problem:
    return Problem(404, "NOT_FOUND", what)


def of_client(error: ClientError) -> Problem:
    """What a cluster or the way to it has to say, as an answer."""
    message = str(error)
    if isinstance(error, _OUT_OF_REACH):
        return Problem(503, "CLUSTER_UNREACHABLE", message)
    if isinstance(error, AuthenticationError):
        return Problem(502, "CLUSTER_REFUSES", message)
    if isinstance(error, UnknownTopicError):
        return Problem(404, "UNKNOWN_TOPIC_OR_PARTITION", message)
    if not isinstance(error, BrokerError):
        return Problem(502, type(error).__name__, message)
    code, status = error.code, 502
    if code in _MISSING:
        status = 404
    elif code in _BUSY or isinstance(error, GroupError):
        status = 409
    elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
        status = 416
    elif code in _WRONG:
        status = 422
    return Problem(status, _NAMES.get(code, f"ERROR_{code}"), message)
