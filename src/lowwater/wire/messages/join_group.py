"""JoinGroup: ask to be a member of a classic group; answered when the rebalance has gathered its members."""

from lowwater.wire.schema import Bool, Bytes, Int16, Int32, String, message, since, struct


@struct
class JoinGroupRequestProtocol:
    """A way of assigning that the member knows, and what it tells the leader in it."""

    name: String
    metadata: Bytes


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupRequest:
    """An empty `member_id` asks for one. Before v1 the session timeout is the rebalance timeout too."""

    group_id: String
    session_timeout_ms: Int32
    rebalance_timeout_ms: Int32 = since(1, default=-1, ignorable=True)
    member_id: String
    group_instance_id: String | None = since(5)
    protocol_type: String
    protocols: list[JoinGroupRequestProtocol]
    reason: String | None = since(8, ignorable=True)


@struct
class JoinGroupResponseMember:
    """A member, as the leader has to know it."""

    member_id: String
    group_instance_id: String | None = since(5, ignorable=True)
    metadata: Bytes


@message(key=11, versions=(0, 9), flexible=6)
class JoinGroupResponse:
    """`members` is filled for the leader alone."""

    throttle_time_ms: Int32 = since(2, ignorable=True)
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: String | None = since(7, ignorable=True)
    protocol_name: String | None = since(0, null=7, default="")
    leader: String = ""
    skip_assignment: Bool = since(9)
    member_id: String = ""
    members: list[JoinGroupResponseMember] = since(0)
