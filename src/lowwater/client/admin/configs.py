"""Settings of topics, brokers and groups: reading and changing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from lowwater.client.admin.asking import Appearing, ask_all, ask_controller, refusal
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.config.setting import Kind
from lowwater.wire.messages import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from lowwater.wire.messages.describe_configs import DescribeConfigsResource, DescribeConfigsResourceResult
from lowwater.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource


class Of(IntEnum):
    """What has settings, by the numbers on the wire."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Source(IntEnum):
    """Where a value comes from, by the numbers on the wire."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER_ALTERED = 2
    ALL_BROKERS_ALTERED = 3
    BROKER_FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


# Set for the resource itself, and not for all or by nobody.
OWN = frozenset({Source.TOPIC, Source.BROKER_ALTERED, Source.BROKER_LOGGER, Source.CLIENT_METRICS, Source.GROUP})
_OF_ONE_BROKER = (Of.BROKER, Of.BROKER_LOGGER)


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that has settings. A broker goes by the text of its id; "" stands for all brokers."""

    of: Of
    name: str

    def __str__(self) -> str:
        return f"{self.of.name.lower().replace('_', ' ')} {self.name!r}"


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """`value` is None for secrets, and where nothing is set and there is no default."""

    name: str
    value: str | None
    source: Source = Source.UNKNOWN
    is_read_only: bool = False
    is_sensitive: bool = False
    kind: Kind | None = None

    @property
    def is_own(self) -> bool:
        """Whether it was set for this very resource."""
        return self.source in OWN


@dataclass(frozen=True, slots=True)
class Append:
    """To a setting that is a list."""

    value: str


@dataclass(frozen=True, slots=True)
class Subtract:
    """From a setting that is a list."""

    value: str


Change: TypeAlias = str | int | float | bool | Append | Subtract | None
"""The new value, or None: back to the default."""
Settings: TypeAlias = Mapping[str, Change]
Changes: TypeAlias = Mapping[str, Settings] | Mapping[Resource, Settings] | Mapping[Resource | str, Settings]
"""By resource; a name alone is that of a topic."""

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)


async def describe_configs(
    cluster: Cluster, resources: Iterable[Resource | str], names: Iterable[str] | None = None
) -> Outcomes[Resource, dict[str, ConfigEntry]]:
    """The settings by name, of topics (by their name alone) and other resources; all of them, or those named."""
    keys = None if names is None else list(names)
    appearing = Appearing(cluster)

    def request(chosen: list[Resource]) -> DescribeConfigsRequest:
        wanted = [
            DescribeConfigsResource(resource_type=one.of, resource_name=one.name, configuration_keys=keys)
            for one in chosen
        ]
        return DescribeConfigsRequest(resources=wanted)

    async def attempt(left: list[Resource], left_ms: float) -> dict[Resource, dict[str, ConfigEntry] | ClientError]:
        found = await _ask_each(cluster, left, left_ms, request, lambda answer: answer.results, _entries)
        return appearing.judge(found)

    return await settle(cluster, map(resource_of, resources), attempt)


def _entries(result: Any) -> dict[str, ConfigEntry]:
    return {each.name: _entry(each) for each in sorted(result.configs, key=lambda each: str(each.name))}


def _entry(each: DescribeConfigsResourceResult) -> ConfigEntry:
    source = Source(each.config_source) if each.config_source in _SOURCES else Source.UNKNOWN
    kind = Kind(each.config_type) if each.config_type in _KINDS else None
    return ConfigEntry(each.name, each.value, source, each.read_only, each.is_sensitive, kind)


_SOURCES = frozenset(Source)
_KINDS = frozenset(Kind)


async def alter_configs(cluster: Cluster, changes: Changes, *, validate_only: bool = False) -> Outcomes[Resource, None]:
    """Change single settings and leave the others as they are, or find out whether that would work."""
    wanted = {resource_of(one): each for one, each in changes.items()}
    appearing = Appearing(cluster)

    def request(chosen: list[Resource]) -> IncrementalAlterConfigsRequest:
        resources = [
            AlterConfigsResource(
                resource_type=one.of,
                resource_name=one.name,
                configs=[_alteration(name, change) for name, change in wanted[one].items()],
            )
            for one in chosen
        ]
        return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)

    async def attempt(left: list[Resource], left_ms: float) -> dict[Resource, ClientError | None]:
        found = await _ask_each(cluster, left, left_ms, request, lambda answer: answer.responses, lambda _: None)
        return appearing.judge(found)

    return await settle(cluster, wanted, attempt)


def _alteration(name: str, change: Change) -> AlterableConfig:
    match change:
        case None:
            return AlterableConfig(name=name, config_operation=_DELETE)
        case Append(value):
            return AlterableConfig(name=name, config_operation=_APPEND, value=value)
        case Subtract(value):
            return AlterableConfig(name=name, config_operation=_SUBTRACT, value=value)
        case bool():
            return AlterableConfig(name=name, config_operation=_SET, value=str(change).lower())
    return AlterableConfig(name=name, config_operation=_SET, value=str(change))


def resource_of(named: Resource | str) -> Resource:
    return Resource(Of.TOPIC, named) if isinstance(named, str) else named


async def _ask_each(
    cluster: Cluster,
    resources: list[Resource],
    left_ms: float,
    request: Callable[[list[Resource]], Any],
    rows: Callable[[Any], Iterable[Any]],
    result: Callable[[Any], Any],
) -> dict[Resource, Any]:
    """A broker answers for its own settings; for all others, one broker does."""
    by_node: dict[int | None, list[Resource]] = {}
    for one in resources:
        own = one.of in _OF_ONE_BROKER and one.name.isdecimal()
        by_node.setdefault(int(one.name) if own else None, []).append(one)
    found: dict[Resource, Any] = {}
    for node, chosen in by_node.items():
        answer = await _answer(cluster, node, request(chosen), left_ms)
        if isinstance(answer, ClientError):
            found |= dict.fromkeys(chosen, answer)
            continue
        for row in rows(answer):
            one = Resource(Of(row.resource_type), row.resource_name)
            found[one] = _refused(row, one) if row.error_code else result(row)
    return found


async def _answer(cluster: Cluster, node: int | None, request: Any, left_ms: float) -> Any:
    if node is None:
        return await ask_controller(cluster, request, left_ms)
    known = cluster.network.nodes
    if node not in known and node not in (known := await cluster.brokers(left_ms)):
        return ClientError(f"there is no broker {node}", advice=f"there are {', '.join(map(str, sorted(known)))}")
    return (await ask_all(cluster, {node: request}, left_ms))[node]


def _refused(row: Any, one: Resource) -> ClientError:
    if one.of is Of.TOPIC:
        return refusal(row.error_code, row.error_message, topic=one.name)
    return refusal(row.error_code, row.error_message, what=str(one))
