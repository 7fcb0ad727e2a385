"""Client quotas: they are kept and told, as admin tools expect, but nothing is throttled by them here."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lowwater.broker.metadata_records import QuotaEntity
from lowwater.errors import ApiError, ErrorCode

USER, CLIENT, ADDRESS = "user", "client-id", "ip"
ENTITY_TYPES = (ADDRESS, CLIENT, USER)
LONG_MAX = 2**63 - 1

# quota -> whether fractions make sense
CLIENT_QUOTAS = {
    "producer_byte_rate": False,
    "consumer_byte_rate": False,
    "request_percentage": True,
    "controller_mutation_rate": True,
}
ADDRESS_QUOTAS = {"connection_creation_rate": False}

EXACT, DEFAULT, ANY = 0, 1, 2


@dataclass(frozen=True, slots=True)
class QuotaChange:
    key: str
    value: float
    remove: bool


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Of several parts of one type the last one counts."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


def check_entity(entity: QuotaEntity) -> None:
    types = {kind for kind, _ in entity}
    if not types:
        raise ApiError(ErrorCode.INVALID_REQUEST, "an entity has no parts")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{kind!r} is not one of {', '.join(ENTITY_TYPES)}")
        if name == "":
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the name of a {kind} is empty")
    if ADDRESS in types and len(types) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "quotas of an address cannot be for a user or client as well")
    address = dict(entity).get(ADDRESS)
    if address is not None:
        _check_address(address)


def _check_address(text: str) -> None:
    """Names of hosts are not looked up: an address is an address."""
    try:
        ipaddress.ip_address(text)
    except ValueError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{text!r} is not an IP address") from error


def changed(entity: QuotaEntity, values: Mapping[str, float], changes: Iterable[QuotaChange]) -> dict[str, float]:
    """The quotas of `entity` after `changes`; ApiError when one of them makes no sense."""
    known = ADDRESS_QUOTAS if entity[0][0] == ADDRESS else CLIENT_QUOTAS
    result = dict(values)
    for change in changes:
        if change.remove:
            result.pop(change.key, None)
            continue
        if change.key not in known:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.key!r} is not one of {', '.join(known)}")
        _check_value(change, fractions=known[change.key])
        result[change.key] = change.value
    return result


def _check_value(change: QuotaChange, *, fractions: bool) -> None:
    value = change.value
    if math.isnan(value) or value <= 0:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.key}={value} is not above 0")
    if not fractions and value > LONG_MAX:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.key}={value} is too large")
    if not fractions and value != int(value):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{change.key}={value} is not a whole number")


@dataclass(frozen=True, slots=True)
class Component:
    """A condition on one part of entities: named exactly so, the default one, or any."""

    kind: str
    match_type: int
    match: str | None


def check_filter(components: list[Component]) -> None:
    kinds = [component.kind for component in components]
    for component in components:
        if not component.kind:
            raise ApiError(ErrorCode.INVALID_REQUEST, "a condition names no type of entity")
        if kinds.count(component.kind) > 1:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there are several conditions on {component.kind}")
        if component.kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"{component.kind!r} is not a type of entity")
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"match type {component.match_type} is not known")
        if (component.match_type == EXACT) != (component.match is not None):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"a name of {component.kind} is for exact matches, and only them")
    if ADDRESS in kinds and len(kinds) > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "no entity is an address and something else as well")


def matches(entity: QuotaEntity, components: list[Component], *, strict: bool) -> bool:
    """Whether every condition holds; `strict`: and the entity has no further parts."""
    parts = dict(entity)
    if strict and len(parts) != len(components):
        return False
    return all(component.kind in parts and _fits(parts[component.kind], component) for component in components)


def _fits(name: str | None, component: Component) -> bool:
    return component.match_type == ANY or name == component.match
