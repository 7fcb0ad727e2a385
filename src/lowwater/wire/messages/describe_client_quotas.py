"""DescribeClientQuotas: limits of users, clients and addresses."""

from lowwater.wire.schema import Bool, Float64, Int8, Int16, Int32, String, message, struct


@struct
class ComponentData:
    """A part of the filter. `match_type`: 0 exact, 1 default, 2 any specified."""

    entity_type: String
    match_type: Int8
    match: String | None = None


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest:
    """Describe the quotas that a filter selects."""

    components: list[ComponentData]
    strict: Bool = False


@struct
class EntityData:
    """One part of an entity; a null name is the default entity."""

    entity_type: String
    entity_name: String | None = None


@struct
class ValueData:
    """One quota."""

    key: String
    value: Float64


@struct
class QuotaEntry:
    """An entity and its quotas."""

    entity: list[EntityData]
    values: list[ValueData]


@message(key=48, versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse:
    """Quotas by entity."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    entries: list[QuotaEntry] | None
