"""ListGroups: the groups this broker coordinates, by state (since v4) and type (since v5)."""

from lowwater.wire.schema import Int16, Int32, String, message, since, struct


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsRequest:
    """An empty filter lets all through."""

    states_filter: list[String] = since(4)
    types_filter: list[String] = since(5)


@struct
class ListedGroup:
    """One group."""

    group_id: String
    protocol_type: String
    group_state: String = since(4, ignorable=True)
    group_type: String = since(5, ignorable=True)


@message(key=16, versions=(0, 5), flexible=3)
class ListGroupsResponse:
    """The groups that pass the filters."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = 0
    groups: list[ListedGroup]
