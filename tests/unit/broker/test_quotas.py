"""DescribeClientQuotas and AlterClientQuotas. Codes are those of Apache Kafka 4.3."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.errors import ErrorCode
from lowwater.wire.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest
from lowwater.wire.messages.alter_client_quotas import EntityData, EntryData, OpData
from lowwater.wire.messages.describe_client_quotas import ComponentData

Entity = dict[str, str | None]
OK, INVALID = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
EXACT, DEFAULT, ANY = range(3)


def entry(entity: Entity, *sets: tuple[str, float], removes: tuple[str, ...] = ()) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[OpData(key=key, value=value) for key, value in sets]
        + [OpData(key=key, value=0.0, remove=True) for key in removes],
    )


def alter(node: Any, *entries: EntryData, validate_only: bool = False) -> list[ErrorCode]:
    request = AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return [ErrorCode(result.error_code) for result in node.ask(request).entries]


def describe(node: Any, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    parts = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    return node.ask(DescribeClientQuotasRequest(components=parts, strict=strict))


def quotas(node: Any, *components: tuple[str, int, str | None], strict: bool = False) -> list[Any]:
    return [
        ({part.entity_type: part.entity_name for part in one.entity}, {v.key: v.value for v in one.values})
        for one in describe(node, *components, strict=strict).entries
    ]


def test_quotas_are_kept_also_after_a_restart(node: Any) -> None:
    bob = entry({"user": "bob"}, ("producer_byte_rate", 1000.0), ("request_percentage", 12.5))
    assert alter(node, bob, entry({"user": None}, ("consumer_byte_rate", 5.0))) == [OK, OK]
    node.restart()
    assert quotas(node) == [
        ({"user": "bob"}, {"producer_byte_rate": 1000.0, "request_percentage": 12.5}),
        ({"user": None}, {"consumer_byte_rate": 5.0}),
    ]


def test_removing_the_last_quota_removes_the_entity(node: Any) -> None:
    alter(node, entry({"user": "bob"}, ("producer_byte_rate", 1.0), ("consumer_byte_rate", 2.0)))
    assert alter(node, entry({"user": "bob"}, removes=("producer_byte_rate",))) == [OK]
    assert quotas(node) == [({"user": "bob"}, {"consumer_byte_rate": 2.0})]
    alter(node, entry({"user": "bob"}, removes=("consumer_byte_rate",)))
    assert quotas(node) == []


def test_a_validated_quota_is_not_set(node: Any) -> None:
    assert alter(node, entry({"user": "bob"}, ("producer_byte_rate", 1.0)), validate_only=True) == [OK]
    assert quotas(node) == []


@pytest.mark.parametrize(
    ("entity", "key", "value", "code"),
    [
        ({"user": "bob"}, "nosuch", 1.0, INVALID),
        ({"user": "bob"}, "producer_byte_rate", -1.0, INVALID),
        ({"user": "bob"}, "producer_byte_rate", 0.0, INVALID),
        ({"user": "bob"}, "producer_byte_rate", 1.5, INVALID),
        ({"user": "bob"}, "producer_byte_rate", 1e30, INVALID),
        ({"user": "bob"}, "producer_byte_rate", float("inf"), INVALID),
        ({"user": "bob"}, "producer_byte_rate", float("nan"), INVALID),
        ({"user": "bob"}, "request_percentage", 1.5, OK),
        ({"user": "bob"}, "controller_mutation_rate", 1.5, OK),
        ({"user": "bob", "client-id": None}, "consumer_byte_rate", 5.0, OK),
        ({"user": "bob"}, "connection_creation_rate", 1.0, INVALID),
        ({"ip": "1.2.3.4"}, "connection_creation_rate", 1.0, OK),
        ({"ip": None}, "connection_creation_rate", 1.0, OK),
        ({"ip": "::1"}, "connection_creation_rate", 1.0, OK),
        ({"ip": "1.2.3.4"}, "connection_creation_rate", 1.5, INVALID),
        ({"ip": "1.2.3.4"}, "producer_byte_rate", 1.0, INVALID),
        ({"ip": "not an ip"}, "connection_creation_rate", 1.0, INVALID),
        ({"ip": "1.2.3.4", "user": "bob"}, "producer_byte_rate", 1.0, INVALID),
        ({"nosuch": "x"}, "producer_byte_rate", 1.0, INVALID),
        ({"user": ""}, "producer_byte_rate", 1.0, INVALID),
        ({}, "producer_byte_rate", 1.0, INVALID),
    ],
)
def test_quotas_are_judged_as_kafka_judges_them(
    node: Any, entity: Entity, key: str, value: float, code: ErrorCode
) -> None:
    assert alter(node, entry(entity, (key, value))) == [code]
    assert (quotas(node) == []) == (code != OK)


def test_one_bad_entry_does_not_hinder_the_others(node: Any) -> None:
    good, bad = entry({"user": "a"}, ("producer_byte_rate", 1.0)), entry({"user": "b"}, ("nosuch", 1.0))
    assert alter(node, good, bad) == [OK, INVALID]
    assert [entity for entity, _ in quotas(node)] == [{"user": "a"}]


def test_an_entity_or_a_quota_named_twice_is_refused(node: Any) -> None:
    twice = entry({"user": "a"}, ("producer_byte_rate", 1.0))
    assert alter(node, twice, twice) == [INVALID]
    assert alter(node, entry({"user": "a"}, ("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0))) == [INVALID]
    assert quotas(node) == []


def test_entities_are_the_same_in_whatever_order_their_parts_come(node: Any) -> None:
    alter(node, entry({"user": "a", "client-id": "c"}, ("producer_byte_rate", 1.0)))
    alter(node, entry({"client-id": "c", "user": "a"}, ("consumer_byte_rate", 2.0)))
    assert quotas(node) == [({"user": "a", "client-id": "c"}, {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0})]


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, ["bob", "default", "bob+c", "ip"]),
        ([], True, []),
        ([("user", EXACT, "bob")], False, ["bob", "bob+c"]),
        ([("user", EXACT, "bob")], True, ["bob"]),
        ([("user", DEFAULT, None)], False, ["default"]),
        ([("user", ANY, None)], False, ["bob", "default", "bob+c"]),
        ([("user", ANY, None)], True, ["bob", "default"]),
        ([("user", EXACT, "bob"), ("client-id", ANY, None)], True, ["bob+c"]),
        ([("ip", ANY, None)], False, ["ip"]),
        ([("client-id", DEFAULT, None)], False, []),
    ],
)
def test_a_filter_selects_entities(node: Any, components: Any, strict: bool, found: list[str]) -> None:
    entities: dict[str, Entity] = {
        "bob": {"user": "bob"},
        "default": {"user": None},
        "bob+c": {"user": "bob", "client-id": "c"},
    }
    alter(node, *(entry(entity, ("producer_byte_rate", 1.0)) for entity in entities.values()))
    alter(node, entry({"ip": "1.2.3.4"}, ("connection_creation_rate", 1.0)))
    entities["ip"] = {"ip": "1.2.3.4"}
    assert [entity for entity, _ in quotas(node, *components, strict=strict)] == [entities[name] for name in found]


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("ip", ANY, None), ("user", ANY, None)], INVALID),
        ([("nosuch", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], INVALID),
        ([("user", 7, None)], INVALID),
        ([("user", EXACT, None)], INVALID),
        ([("user", DEFAULT, "x")], INVALID),
        ([("user", ANY, "x")], INVALID),
        ([("", ANY, None)], INVALID),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(node: Any, components: Any, code: ErrorCode) -> None:
    response = describe(node, *components)
    assert (ErrorCode(response.error_code), response.entries) == (code, None)
