"""DescribeClientQuotas v0-1: the quotas of the entities that a filter selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.quotas import Component, check_filter, matches
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    QuotaEntry,
    ValueData,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(DescribeClientQuotasRequest)
def describe_client_quotas(
    broker: Broker, request: DescribeClientQuotasRequest, context: RequestContext
) -> DescribeClientQuotasResponse:
    components = [Component(one.entity_type, one.match_type, one.match) for one in request.components]
    try:
        check_filter(components)
    except ApiError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.detail, entries=None)
    selected = [
        (entity, values)
        for entity, values in broker.topics.quotas.items()
        if matches(entity, components, strict=request.strict)
    ]
    return DescribeClientQuotasResponse(
        error_message="",
        entries=[
            QuotaEntry(
                entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                values=[ValueData(key=key, value=value) for key, value in values.items()],
            )
            for entity, values in selected
        ],
    )
