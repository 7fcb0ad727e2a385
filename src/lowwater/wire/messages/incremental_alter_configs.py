"""IncrementalAlterConfigs: set, delete, append to or subtract from single settings."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, message, struct


@struct
class AlterableConfig:
    """A change of one setting: 0 set, 1 delete, 2 append, 3 subtract."""

    name: String
    config_operation: Int8
    value: String | None = None


@struct
class AlterConfigsResource:
    """Changes to the settings of one resource."""

    resource_type: Int8
    resource_name: String
    configs: list[AlterableConfig]


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsRequest:
    """Change settings, or only check whether that would work."""

    resources: list[AlterConfigsResource]
    validate_only: Bool = False


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String


@message(key=44, versions=(0, 1), flexible=1)
class IncrementalAlterConfigsResponse:
    """Results by resource."""

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse]
