"""ListConfigResources v0-1: what has settings. v0 lists client metrics subscriptions alone, of which there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.config_changes import ResourceType
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker

TYPES_SINCE = 1


@handles(ListConfigResourcesRequest)
def list_config_resources(
    broker: Broker, request: ListConfigResourcesRequest, context: RequestContext
) -> ListConfigResourcesResponse:
    if context.api_version < TYPES_SINCE:
        return ListConfigResourcesResponse(config_resources=[])
    try:
        types = [ResourceType(number) for number in request.resource_types] or list(ResourceType)
    except ValueError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_VERSION, str(error)) from error
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(types)
            for name in _names(broker, kind)
        ]
    )


def _names(broker: Broker, kind: ResourceType) -> list[str]:
    if kind is ResourceType.TOPIC:
        return broker.topics.names()
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.node_id)]
    if kind is ResourceType.GROUP:
        return sorted(broker.topics.group_configs)
    return []
