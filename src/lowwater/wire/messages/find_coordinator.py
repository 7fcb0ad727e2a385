"""FindCoordinator: which broker coordinates a group or a transactional id. Many keys at once since v4."""

from lowwater.wire.schema import Int8, Int16, Int32, String, between, message, since, struct, until


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorRequest:
    """`key_type`: 0 group, 1 transaction."""

    key: String = until(3)
    key_type: Int8 = since(1)
    coordinator_keys: list[String] = since(4)


@struct
class Coordinator:
    """The coordinator of one key."""

    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=10, versions=(0, 6), flexible=3)
class FindCoordinatorResponse:
    """One coordinator up to v3, a list since v4."""

    throttle_time_ms: Int32 = since(1, ignorable=True)
    error_code: Int16 = until(3)
    error_message: String | None = between(1, 3, ignorable=True)
    node_id: Int32 = until(3)
    host: String = until(3)
    port: Int32 = until(3)
    coordinators: list[Coordinator] = since(4)
