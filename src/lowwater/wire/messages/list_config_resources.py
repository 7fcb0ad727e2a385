"""ListConfigResources: which resources have settings of their own."""

from lowwater.wire.schema import Int8, Int16, Int32, String, message, since, struct


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesRequest:
    """An empty list of types asks for all of them; v0 is about client metrics only."""

    resource_types: list[Int8] = since(1)


@struct
class ConfigResource:
    """One resource."""

    resource_name: String
    resource_type: Int8 = since(1, default=16, ignorable=True)


@message(key=74, versions=(0, 1), flexible=0)
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource]
