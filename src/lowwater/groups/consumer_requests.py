"""What a ConsumerGroupHeartbeat may say, before it is asked of whom."""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups.commands import ConsumerHeartbeat
from lowwater.groups.config import GroupConfig
from lowwater.groups.consumer_members import LEFT_FOR_A_WHILE, MemberMetadata
from lowwater.groups.consumer_reconciliation import Partitions
from lowwater.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOINS = 0
LEAVES = -1
# What a v0 may say without a member id.
WITHOUT_ID = (JOINS, LEFT_FOR_A_WHILE)


def check_heartbeat(command: ConsumerHeartbeat, config: GroupConfig) -> None:
    """INVALID_REQUEST for a request that contradicts itself, UNSUPPORTED_ASSIGNOR for a wish that cannot be met."""
    request = command.request
    if problem := _problem(request, command.generates_member_id):
        raise ApiError(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in config.consumer_assignors:
        offered = ", ".join(config.consumer_assignors)
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR, f"there is no assignor {request.server_assignor!r}; there are {offered}"
        )


def _problem(request: ConsumerGroupHeartbeatRequest, generates_member_id: bool) -> str | None:
    if not request.group_id:
        return "the group id is empty"
    if not request.member_id and not (generates_member_id and request.member_epoch in WITHOUT_ID):
        return "the member id is empty"
    if request.instance_id == "":
        return "the instance id is empty"
    if request.rack_id == "":
        return "the rack id is empty"
    if request.member_epoch < LEFT_FOR_A_WHILE:
        return f"there is no member epoch {request.member_epoch}"
    if request.member_epoch == LEFT_FOR_A_WHILE and request.instance_id is None:
        return "only a member with an instance id can leave for a while"
    return _problem_of_join(request) if request.member_epoch == JOINS else None


def _problem_of_join(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "a member that joins has to say its rebalance timeout"
    if request.topic_partitions is None or request.topic_partitions:
        return "a member that joins owns no partitions, and has to say so"
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "a member that joins has to subscribe, by topic names or by a regular expression"
    return None


def is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """A member that is not sure what the coordinator knows says everything, and is told everything."""
    return (
        request.topic_partitions is not None
        and request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )


def owned_by(request: ConsumerGroupHeartbeatRequest) -> Partitions | None:
    if request.topic_partitions is None:
        return None
    return {topic.topic_id: frozenset(topic.partitions) for topic in request.topic_partitions}


def updated(metadata: MemberMetadata, command: ConsumerHeartbeat) -> MemberMetadata:
    """`metadata` with what the heartbeat says anew; what it leaves out stays as it is."""
    request = command.request
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return MemberMetadata(
        instance_id=_or(request.instance_id, metadata.instance_id),
        rack_id=_or(request.rack_id, metadata.rack_id),
        client_id=command.client_id,
        client_host=command.client_host,
        topics=metadata.topics if names is None else frozenset(names),
        pattern=_or(request.subscribed_topic_regex, metadata.pattern) or "",
        rebalance_timeout_ms=metadata.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        assignor=_or(request.server_assignor, metadata.assignor),
    )


def _or(said: str | None, known: str | None) -> str | None:
    return known if said is None else said
