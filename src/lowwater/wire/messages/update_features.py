"""UpdateFeatures: the levels of features in force in the cluster."""

from lowwater.wire.schema import Bool, Int8, Int16, Int32, String, message, since, struct, until


@struct
class FeatureUpdateKey:
    """The new level of one feature. `upgrade_type`: 1 upward only, 2 downward if nothing is lost, 3 downward."""

    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = until(0)
    upgrade_type: Int8 = since(1, default=1)


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesRequest:
    """Change levels, or only ask whether that would go."""

    timeout_ms: Int32 = 60_000
    feature_updates: list[FeatureUpdateKey]
    validate_only: Bool = since(1, default=False)


@struct
class UpdatableFeatureResult:
    """How it went for one feature."""

    feature: String
    error_code: Int16 = 0
    error_message: String | None = None


@message(key=57, versions=(0, 2), flexible=0)
class UpdateFeaturesResponse:
    """Since v2 it goes for all features or for none, so there is one error."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    results: list[UpdatableFeatureResult] = until(1, ignorable=True)
