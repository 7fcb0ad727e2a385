"""LeaveGroup: take members out of a classic group. One member up to v2, many since v3."""

from lowwater.wire.schema import Int16, Int32, String, message, since, struct, until


@struct
class MemberIdentity:
    """Who leaves: a member id, or an empty one and the instance id of a static member."""

    member_id: String
    group_instance_id: String | None = None
    reason: String | None = since(5, ignorable=True)


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupRequest:
    """`member_id` up to v2, `members` since v3."""

    group_id: String
    member_id: String = until(2)
    members: list[MemberIdentity] = since(3)


@struct
class MemberResponse:
    """How it went for one member."""

    member_id: String
    group_instance_id: String | None = since(3, default="")
    error_code: Int16 = 0


@message(key=13, versions=(0, 5), flexible=4)
class LeaveGroupResponse:
    """Since v3 the error is that of the whole request; members have their own."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = 0
    members: list[MemberResponse] = since(3)
