"""AlterConfigs v0-2: replace all settings of a topic or broker by those given, as older clients do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lowwater.broker.changes import Decision
from lowwater.broker.config_changes import ResourceType, altered, current, repeated_resources, require_values
from lowwater.broker.metadata_records import Record
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError, ErrorCode
from lowwater.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(AlterConfigsRequest)
async def alter_configs(broker: Broker, request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    return await broker.topics.change(lambda: decide(broker, request))


def decide(broker: Broker, request: AlterConfigsRequest) -> Decision[AlterConfigsResponse]:
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
            records.append(_alter(broker, resource))
        except ApiError as error:
            response.error_code, response.error_message = error.code, error.detail
        responses.append(response)
    return Decision([] if request.validate_only else records, AlterConfigsResponse(responses=responses))


def _alter(broker: Broker, resource: AlterConfigsResource) -> Record:
    kind = ResourceType.of(resource.resource_type, ResourceType.TOPIC, ResourceType.BROKER)
    current(broker, kind, resource.resource_name)
    configs = require_values((config.name, config.value) for config in resource.configs)
    return altered(broker, kind, resource.resource_name, configs)
