"""SyncGroup: the leader hands in the assignments, every member is given its own."""

from lowwater.wire.schema import Bytes, Int16, Int32, String, message, since, struct


@struct
class SyncGroupRequestAssignment:
    """What one member shall do, in the words of the assignment protocol."""

    member_id: String
    assignment: Bytes


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupRequest:
    """`assignments` is filled by the leader alone."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = since(3)
    protocol_type: String | None = since(5, ignorable=True)
    protocol_name: String | None = since(5, ignorable=True)
    assignments: list[SyncGroupRequestAssignment]


@message(key=14, versions=(0, 5), flexible=4)
class SyncGroupResponse:
    """The assignment of the member that asked."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = 0
    protocol_type: String | None = since(5, ignorable=True)
    protocol_name: String | None = since(5, ignorable=True)
    assignment: Bytes = b""
