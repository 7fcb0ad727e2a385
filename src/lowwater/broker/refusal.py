"""Answer a whole request with one error, at the narrowest scope that its response has for it.

Responses repeat the names and indexes of the request; only the places where their field names differ stand in a table.
"""

from __future__ import annotations

from typing import Any

from lowwater.errors import ApiError
from lowwater.wire.fields import Array, Field
from lowwater.wire.messages import Api
from lowwater.wire.schema import declaration_of

# What an answer repeats, so that its reader knows of what it speaks.
REPEATED = frozenset(
    {
        "entity",
        "entity_name",
        "entity_type",
        "group_id",
        "index",
        "key",
        "name",
        "partition",
        "partition_id",
        "partition_index",
        "resource_name",
        "resource_type",
        "topic",
        "topic_id",
        "topic_name",
        "transactional_id",
    }
)
# response field -> request fields, where a response names it otherwise
NAMED_OTHERWISE = {
    "coordinators": ("coordinator_keys",),
    "groups": ("group_ids",),
    "name": ("topic",),
    "partition": ("partition_index",),
    "partition_id": ("partition",),
    "partition_index": ("partition", "index"),
    "partition_responses": ("partition_data",),
    "partition_result": ("partitions",),
    "partitions": ("partition_indexes",),
    "replica_election_results": ("topic_partitions",),
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "results": ("resources", "topics", "groups_names"),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "topic": ("name",),
    "transaction_states": ("transactional_ids",),
}
# Where clients look for it first: said here, and of no part.
SAID_OF_ALL = frozenset(
    {
        "AddPartitionsToTxnResponse",
        "LeaveGroupResponse",
        "OffsetDeleteResponse",
        "OffsetFetchResponse",
        "OffsetFetchResponseGroup",
    }
)
ERROR_CODES = frozenset({"error_code", "partition_error_code"})
# Numbers that are -1 when there is nothing to tell.
UNKNOWN = frozenset(
    {"base_offset", "high_watermark", "low_watermark", "node_id", "port", "producer_epoch", "producer_id"}
)
# These speak of a producer that the request named.
OF_A_PRODUCER = frozenset({"WritableTxnMarkerResult"})


def refuse(api: Api, request: Any, error: ApiError, version: int) -> Any:
    """The response of `api` that says `error` of every part of the request, or of the whole when it has no parts."""
    answer = api.response()
    _Refusal(error, version).fill(answer, request)
    return answer


class _Refusal:
    def __init__(self, error: ApiError, version: int) -> None:
        self._error = error
        self._version = version

    def fill(self, answer: Any, asked: Any) -> tuple[bool, bool]:
        """(whether the answer says of what it speaks, whether it says the error)."""
        named = said = False
        fields = [field for field in declaration_of(type(answer)).fields if field.present(self._version)]
        if type(answer).__name__ in SAID_OF_ALL and any(field.name == "error_code" for field in fields):
            fields = [field for field in fields if field.struct is None]
        for field in fields:
            source = _source(field.name, asked)
            if field.name == "producer_id" and type(answer).__name__ in OF_A_PRODUCER:
                answer.producer_id, named = source, True
            elif field.name in UNKNOWN:
                setattr(answer, field.name, -1)
            elif isinstance(field.shape, Array) and field.struct is not None:
                said |= self._parts(answer, field, source or [])
                named |= field.name in REPEATED and bool(source)
            elif field.name in REPEATED and source is not None:
                setattr(answer, field.name, source)
                named = True
        return named, said or self._say(answer, {field.name for field in fields})

    def _parts(self, answer: Any, field: Field, sources: list[Any]) -> bool:
        """Fill an array of structs; what neither repeats the request nor says the error is left out."""
        said_any = False
        parts = []
        assert field.struct is not None
        for source in sources:
            part = field.struct()
            named, said = self.fill(part, source if hasattr(source, "__slots__") else _Bare(source))
            if named and (said or field.name in REPEATED):
                parts.append(part)
                said_any |= said
        setattr(answer, field.name, parts)
        return said_any

    def _say(self, answer: Any, names: set[str]) -> bool:
        if "error_message" in names:
            answer.error_message = self._error.detail or None
        for name in ERROR_CODES & names:
            setattr(answer, name, int(self._error.code))
        return bool(ERROR_CODES & names)


def _source(name: str, asked: Any) -> Any:
    values = [getattr(asked, candidate, None) for candidate in (name, *NAMED_OTHERWISE.get(name, ()))]
    # A field of other versions is there, but empty.
    return next((value for value in values if value not in (None, [])), None)


class _Bare:
    """An element that is a plain value in the request (a name, an index) and a struct in the response."""

    def __init__(self, value: Any) -> None:
        text = value if isinstance(value, str) else None
        self.name = self.topic = self.key = self.group_id = self.transactional_id = text
        self.partition = self.partition_index = value if isinstance(value, int) else None
