"""ConsumerGroupDescribe v0-1: groups whose partitions the broker assigns. v1 adds the type of each member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lowwater.broker.operations import ON_GROUPS
from lowwater.broker.router import RequestContext, handles
from lowwater.errors import ApiError
from lowwater.groups.commands import DescribeConsumerGroup
from lowwater.pending import Pending
from lowwater.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)

if TYPE_CHECKING:
    from lowwater.broker.broker import Broker


@handles(ConsumerGroupDescribeRequest, pipelines=True)
def consumer_group_describe(broker: Broker, request: ConsumerGroupDescribeRequest, context: RequestContext) -> Any:
    answers = [_describe(broker, name) for name in dict.fromkeys(request.group_ids)]

    def response(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = ON_GROUPS
        return ConsumerGroupDescribeResponse(groups=groups)

    return Pending.gather(answers, response)


def _describe(broker: Broker, name: str) -> Any:
    def refused(error: ApiError) -> DescribedGroup:
        return DescribedGroup(error_code=error.code, error_message=error.detail, group_id=name)

    return broker.groups.ask_or(name, DescribeConsumerGroup(name), refused)
