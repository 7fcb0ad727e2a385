"""ApiVersions: what a broker serves. The first request on most connections."""

from lowwater.wire.schema import Bool, Int16, Int32, Int64, String, message, since, struct, tagged


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsRequest:
    """The client may say what it is."""

    client_software_name: String = since(3, ignorable=True)
    client_software_version: String = since(3, ignorable=True)


@struct
class ApiVersion:
    """The versions of one API that are served."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeatureKey:
    """The levels of a feature that this broker supports."""

    name: String
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeatureKey:
    """The levels of a feature in force in the cluster."""

    name: String
    max_version_level: Int16
    min_version_level: Int16


@message(key=18, versions=(0, 4), flexible=3)
class ApiVersionsResponse:
    """Its header is always v0, so that every client can read it."""

    error_code: Int16 = 0
    api_keys: list[ApiVersion]
    throttle_time_ms: Int32 = since(1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = tagged(0, since=3, ignorable=True)
    finalized_features_epoch: Int64 = tagged(1, since=3, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = tagged(2, since=3, ignorable=True)
    zk_migration_ready: Bool = tagged(3, since=3, ignorable=True)
