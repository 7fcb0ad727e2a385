"""DescribeConfigs: settings of topics and brokers, with where each value comes from."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, message, since, struct


@struct
class DescribeConfigsResource:
    """One resource; null keys ask for all settings."""

    resource_type: Int8
    resource_name: String
    configuration_keys: list[String] | None


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsRequest:
    """Describe settings."""

    resources: list[DescribeConfigsResource]
    include_synonyms: Bool = False
    include_documentation: Bool = since(3)


@struct
class DescribeConfigsSynonym:
    """A place that also gives this setting, in order of precedence."""

    name: String
    value: String | None = None
    source: Int8


@struct
class DescribeConfigsResourceResult:
    """One setting."""

    name: String
    value: String | None = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: list[DescribeConfigsSynonym] = since(0)
    config_type: Int8 = since(3, ignorable=True)
    documentation: String | None = since(3, ignorable=True)


@struct
class DescribeConfigsResult:
    """The settings of one resource."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8
    resource_name: String
    configs: list[DescribeConfigsResourceResult]


@message(key=32, versions=(1, 4), flexible=4)
class DescribeConfigsResponse:
    """Settings by resource."""

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult]
