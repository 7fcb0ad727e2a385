"""IncrementalAlterConfigs v0-1: change single settings of topics, brokers, loggers and groups.

Operations: 0 set, 1 delete, 2 append to and 3 subtract from a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker import loggers
from lowwater.broker.changes import Decision
from lowwater.broker.config_changes import (
    ResourceType,
    altered,
    current,
    incremented,
    repeated_resources,
    require_node,
    require_once,
)
from lowwater.broker.metadata_records import Record
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(IncrementalAlterConfigsRequest)
async def incremental_alter_configs(
    broker: Broker, request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    return await broker.topics.change(lambda: decide(broker, request))


def decide(broker: Broker, request: IncrementalAlterConfigsRequest) -> Decision[IncrementalAlterConfigsResponse]:
    records: list[Record] = []
    responses = []
    repeated = repeated_resources((one.resource_type, one.resource_name) for one in request.resources)
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            if (resource.resource_type, resource.resource_name) in repeated:
                raise ApiError(ErrorCode.INVALID_REQUEST, "a resource is named more than once")
            records += _alter(broker, resource, validate_only=request.validate_only)
        except ApiError as error:
            response.error_code, response.error_message = error.code, error.detail
        responses.append(response)
    return Decision([] if request.validate_only else records, IncrementalAlterConfigsResponse(responses=responses))


def _alter(broker: Broker, resource: AlterConfigsResource, *, validate_only: bool) -> list[Record]:
    kind = ResourceType.of(
        resource.resource_type,
        ResourceType.TOPIC,
        ResourceType.BROKER,
        ResourceType.BROKER_LOGGER,
        ResourceType.GROUP,
    )
    changes = [(config.name, config.config_operation, config.value) for config in resource.configs]
    require_once(name for name, _, _ in changes)
    if kind is ResourceType.BROKER_LOGGER:
        require_node(broker, resource.resource_name)
        loggers.alter(changes, validate_only=validate_only)
        return []
    configs = incremented(kind, current(broker, kind, resource.resource_name), changes)
    return [altered(broker, kind, resource.resource_name, configs)]
