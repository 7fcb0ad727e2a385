"""Heartbeat: a member of a classic group is alive, and learns whether to join again."""

from lowwater.wire.schema import Int16, Int32, String, message, since


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatRequest:
    """From one member, in the generation it believes to be in."""

    group_id: String
    generation_id: Int32
    member_id: String
    group_instance_id: String | None = since(3)


@message(key=12, versions=(0, 4), flexible=4)
class HeartbeatResponse:
    """No error: all as it was."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = 0
