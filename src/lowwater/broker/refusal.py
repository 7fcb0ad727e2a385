"""Answer a whole request with one error, at the scope its response has for it.

Responses repeat the names and indexes of the request; only the places where their field names differ stand in a table.
"""

from __future__ import annotations

from typing import Any

from lowwater.errors import ApiError
from lowwater.wire.fields import Array, Shape
from lowwater.wire.messages import Api
from lowwater.wire.schema import declaration_of

# response field -> request field, where a response names it otherwise
NAMED_OTHERWISE = {
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "partition_responses": ("partition_data",),
    "partition_index": ("partition", "index"),
    "partition": ("partition_index",),
    "results": ("resources", "topics"),
    "topics": ("topic_names",),
    "topic": ("name",),
    "name": ("topic",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "partition_id": ("partition",),
}


def refuse(api: Api, request: Any, error: ApiError) -> Any:
    """The response of `api` in which every error code is `error.code`."""
    return _fill(api.response, request, error)


def _fill(kind: type[Any], asked: Any, error: ApiError) -> Any:
    answer = kind()
    for field in declaration_of(kind).fields:
        if field.name == "error_code":
            answer.error_code = int(error.code)
        elif field.name == "error_message":
            answer.error_message = error.detail or None
        elif (source := _source(field.name, asked)) is not None:
            setattr(answer, field.name, _copy(field.shape, source, error))
    return answer


def _source(name: str, asked: Any) -> Any:
    for candidate in (name, *NAMED_OTHERWISE.get(name, ())):
        value = getattr(asked, candidate, None)
        if value is not None:
            return value
    return None


def _copy(shape: Shape, source: Any, error: ApiError) -> Any:
    if not isinstance(shape, Array) or not isinstance(shape.item, type):
        return source
    return [_fill(shape.item, one if hasattr(one, "__slots__") else _Bare(one), error) for one in source]


class _Bare:
    """An element that is a plain value in the request (a name, an index) and a struct in the response."""

    def __init__(self, value: Any) -> None:
        self.name = self.topic = value if isinstance(value, str) else None
        self.partition = self.partition_index = value if isinstance(value, int) else None
