"""DescribeGroups: state and members of classic groups."""

from lowwater.wire.schema import Bool, Bytes, Int16, Int32, String, message, since, struct


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsRequest:
    """Groups by name."""

    groups: list[String]
    include_authorized_operations: Bool = since(3)


@struct
class DescribedGroupMember:
    """A member; what it told and was given in the words of the group's protocol."""

    member_id: String
    group_instance_id: String | None = since(4, ignorable=True)
    client_id: String
    client_host: String
    member_metadata: Bytes
    member_assignment: Bytes


@struct
class DescribedGroup:
    """A group and its members, or why it cannot be described."""

    error_code: Int16 = 0
    error_message: String | None = since(6)
    group_id: String
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = since(0)
    authorized_operations: Int32 = since(3, default=-0x80000000)


@message(key=15, versions=(0, 6), flexible=5)
class DescribeGroupsResponse:
    """One row for each group that was asked for."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    groups: list[DescribedGroup]
