"""DeleteGroups: forget groups that have no members, with all they have committed."""

from lowwater.wire.schema import Int16, Int32, String, message, struct


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsRequest:
    """Groups by name."""

    groups_names: list[String]


@struct
class DeletableGroupResult:
    """How it went for one group."""

    group_id: String
    error_code: Int16 = 0


@message(key=42, versions=(0, 2), flexible=2)
class DeleteGroupsResponse:
    """One result for each group."""

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult]
