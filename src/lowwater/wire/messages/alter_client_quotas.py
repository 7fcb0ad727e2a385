"""AlterClientQuotas: set or remove limits."""

from lowwater.wire.schema import Bool, Float64, Int16, Int32, String, message, struct


@struct
class EntityData:
    """One part of an entity; a null name is the default entity."""

    entity_type: String
    entity_name: String | None = None


@struct
class OpData:
    """Set one quota, or remove it."""

    key: String
    value: Float64
    remove: Bool = False


@struct
class EntryData:
    """Changes for one entity."""

    entity: list[EntityData]
    ops: list[OpData]


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasRequest:
    """Change quotas, or only check whether that would work."""

    entries: list[EntryData]
    validate_only: Bool = False


@struct
class EntryResult:
    """What became of one entity."""

    error_code: Int16 = 0
    error_message: String | None = None
    entity: list[EntityData]


@message(key=49, versions=(0, 1), flexible=1)
class AlterClientQuotasResponse:
    """Results by entity."""

    throttle_time_ms: Int32 = 0
    entries: list[EntryResult]
