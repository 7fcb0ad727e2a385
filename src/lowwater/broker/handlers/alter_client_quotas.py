"""AlterClientQuotas v0-1: set and remove quotas; each entity is altered or refused by itself."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.metadata_records import QuotaEntity, QuotaSet, Record
from lowwater.broker.quotas import QuotaChange, changed, check_entity, entity_of
from lowwater.broker.router import RequestContext, handles
from lowwater.broker.topics import Topics
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(AlterClientQuotasRequest)
async def alter_client_quotas(
    broker: Broker, request: AlterClientQuotasRequest, context: RequestContext
) -> AlterClientQuotasResponse:
    return await broker.topics.change(lambda: decide(broker.topics, request))


def decide(topics: Topics, request: AlterClientQuotasRequest) -> Decision[AlterClientQuotasResponse]:
    records: list[Record] = []
    results: list[EntryResult] = []
    named = [(_entity(entry), entry) for entry in request.entries]
    repeated = Counter(entity for entity, _ in named)
    for entity, entry in dict(named).items():
        result = EntryResult(entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity])
        try:
            if repeated[entity] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "an entity is named more than once")
            records += _alter(topics, entity, entry)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.detail
        results.append(result)
    return Decision([] if request.validate_only else records, AlterClientQuotasResponse(entries=results))


def _entity(entry: EntryData) -> QuotaEntity:
    return entity_of((part.entity_type, part.entity_name) for part in entry.entity)


def _alter(topics: Topics, entity: QuotaEntity, entry: EntryData) -> list[Record]:
    check_entity(entity)
    repeated = [key for key, count in Counter(op.key for op in entry.ops).items() if count > 1]
    if repeated:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"quotas are named more than once: {', '.join(repeated)}")
    before = topics.quotas.get(entity, {})
    after = changed(entity, before, (QuotaChange(op.key, op.value, op.remove) for op in entry.ops))
    return [QuotaSet(entity, after)] if after != before else []
