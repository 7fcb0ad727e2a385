"""AlterConfigs: replace all settings of a resource."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, message, struct


@struct
class AlterableConfig:
    """A setting and its new value."""

    name: String
    value: String | None = None


@struct
class AlterConfigsResource:
    """All settings that a resource shall have."""

    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsRequest:
    """Replace settings, or only check whether that would work."""

    resources: list[AlterConfigsResource]
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String


@message(key=33, versions=(0, 2), flexible=2)
class AlterConfigsResponse:
    """Results by resource."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
