"""Manual replica assignments, on a broker that is alone."""

from __future__ import annotations

from lowwater.errors import ApiError, ErrorCode


def check_replicas(broker_ids: list[int], node_id: int) -> None:
    """Refuse what is not this node, once."""
    if not broker_ids:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned to no broker")
    for broker_id in broker_ids:
        if broker_id != node_id:
            raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"there is no broker {broker_id}, only {node_id}")
    if len(broker_ids) > 1:
        raise ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"broker {node_id} is assigned more than once")
