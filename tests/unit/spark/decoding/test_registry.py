"""The schema registry over HTTP, frames before values, and schemas by id."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.integration.client import certificates
from tests.unit.spark.decoding.decoded import decode, decoder, reason_of, rows_of
from tests.unit.spark.decoding.registries import FakeRegistry, known, serving

from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.errors import DecodeError, RegistryError, SchemaError
from lowwater.spark.decoding.registry import TRIES, Registry
from lowwater.spark.decoding.spec import DecodeSpec, RegistrySpec


def frame(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def avro(*fields: tuple[str, Any]) -> str:
    listed = [
        {"name": name, "type": kind} | ({"default": None} if isinstance(kind, list) else {}) for name, kind in fields
    ]
    return json.dumps({"type": "record", "name": "r", "fields": listed})


V1, V2 = avro(("n", "int")), avro(("n", "long"), ("s", ["null", "string"]))


def test_rows_are_read_by_their_own_schema_as_the_subjects_latest() -> None:
    registry = FakeRegistry()
    registry.add(7, "orders-value", 1, V1)
    registry.add(300, "orders-value", 2, V2)
    with serving(registry):
        spec = DecodeSpec.of("avro", registry=RegistrySpec(registry.url)).with_subject("orders").loaded()
        one = Decoder.of(spec)
        rows = [frame(7, b"\x02"), frame(300, b"\x04\x02\x02x"), None, frame(7, b"\x06")]
        assert rows_of(one, rows) == [{"n": 1, "s": None}, {"n": 2, "s": "x"}, None, {"n": 3, "s": None}]
        assert rows_of(Decoder.of(spec), rows[:1]) == [{"n": 1, "s": None}]
    assert registry.asked == ["/subjects/orders-value/versions/latest", "/schemas/ids/7", "/schemas/ids/300"]


def test_a_version_can_be_named_and_a_subject_has_to_be() -> None:
    registry = FakeRegistry()
    registry.add(1, "s", 1, V1)
    registry.add(2, "s", 2, V2)
    with serving(registry):
        spec = DecodeSpec.of("avro", registry=RegistrySpec(registry.url, subject="s", version="1"))
        assert spec.loaded().schema == V1
        with pytest.raises(DecodeError, match=r"decode.registry.subject is needed"):
            DecodeSpec.of("avro", registry=RegistrySpec(registry.url)).loaded()


def test_an_unknown_id_is_a_bad_row_and_is_not_asked_for_again_and_again() -> None:
    registry = FakeRegistry()
    registry.add(1, "s", 1, V1)
    with serving(registry):
        one = decoder("avro", V1, registry=RegistrySpec(registry.url))
        reason = reason_of(one, frame(9, b"\x02"))
        assert reason_of(one, frame(9, b"\x02")).startswith("schema 9: the schema registry has no schema 9")
        assert rows_of(one, [frame(1, b"\x02")]) == [{"n": 1}]
    assert reason.startswith("schema 9: ")
    assert "answers 404 to /schemas/ids/9: Schema not found" in reason
    assert registry.asked.count("/schemas/ids/9") == 1


def test_a_registry_that_fails_for_a_while_is_asked_again() -> None:
    registry = FakeRegistry(failures=[503, 429])
    registry.add(1, "s", 1, V1)
    waits: list[float] = []
    with serving(registry):
        found = Registry(RegistrySpec(registry.url), sleep=waits.append).by_id(1, "avro")
    assert found.text == V1
    assert waits == [0.25, 0.5]


def test_a_registry_that_stays_away_makes_no_rows_bad() -> None:
    registry = FakeRegistry(failures=[500] * 50)
    with serving(registry):
        asked = Registry(RegistrySpec(registry.url), sleep=lambda _: None)
        with pytest.raises(RegistryError, match="answers 500 to /schemas/ids/1: not now") as caught:
            asked.by_id(1, "avro")
    assert caught.value.retriable
    assert not isinstance(caught.value, SchemaError)  # which would make rows bad
    assert len(registry.asked) == TRIES
    with pytest.raises(RegistryError, match="cannot be reached") as caught:
        asked.by_id(1, "avro")
    assert caught.value.retriable


def test_a_login_is_sent_and_never_told() -> None:
    registry = FakeRegistry(login="me:sesame")
    registry.add(1, "s", 1, V1)
    with serving(registry):
        assert Registry(RegistrySpec(registry.url, "me", "sesame")).by_id(1, "avro").text == V1
        with pytest.raises(RegistryError, match=r"answers 401 .*check decode.registry.user") as caught:
            Registry(RegistrySpec(registry.url, "me", "wrong-sesame")).by_id(1, "avro")
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(("status", "body"), [(302, b""), (200, b"<html>"), (200, b"[1]"), (200, {"no": "schema"})])
def test_an_answer_that_is_none_is_refused(status: int, body: Any) -> None:
    registry = FakeRegistry(answers={"/schemas/ids/1": body}, failures=[status] if status != 200 else [])
    with serving(registry), pytest.raises(RegistryError, match="answer") as caught:
        Registry(RegistrySpec(registry.url)).by_id(1, "avro")
    assert not caught.value.retriable
    assert len(registry.asked) == 1  # and it follows nobody elsewhere


def test_tls_trusts_only_the_authority_it_was_told(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate("broker"), made.key("broker"))
    registry = FakeRegistry()
    registry.add(1, "s", 1, V1)
    with serving(registry, context):
        assert Registry(RegistrySpec(registry.url, ca=made.authority)).by_id(1, "avro").text == V1
        with pytest.raises(
            RegistryError, match=r"a certificate that is not trusted: .*name its CA by decode.registry.ca"
        ):
            Registry(RegistrySpec(registry.url)).by_id(1, "avro")
        with pytest.raises(RegistryError, match="cannot be used: No such file"):
            Registry(RegistrySpec(registry.url, ca=str(tmp_path / "gone.pem"))).by_id(1, "avro")


def test_a_schema_brings_along_what_it_refers_to() -> None:
    colour = json.dumps({"type": "enum", "name": "Colour", "namespace": "shop", "symbols": ["RED"]})
    car = json.dumps(
        {"type": "record", "name": "Car", "namespace": "shop", "fields": [{"name": "c", "type": "shop.Colour"}]}
    )
    registry = FakeRegistry()
    registry.add(1, "colour", 3, colour)
    registry.add(2, "car", 1, car, references=[{"name": "shop.Colour", "subject": "colour", "version": 3}])
    park = avro(("car", "shop.Car"), ("c", "shop.Colour"))
    registry.add(3, "park", 1, park, references=[{"name": "shop.Car", "subject": "car", "version": 1}])
    with serving(registry):
        spec = DecodeSpec.of("avro", registry=RegistrySpec(registry.url, subject="park")).loaded()
        assert rows_of(Decoder.of(spec), [frame(3, b"\x00\x00")]) == [{"car": {"c": "RED"}, "c": "RED"}]


def test_schemas_of_another_format_are_told_apart() -> None:
    one = decoder("avro", V1, registry=known({1: ("PROTOBUF", "message M {}")}))
    assert reason_of(one, frame(1, b"\x02")) == "schema 1: schema 1 of the registry is for PROTOBUF, not for avro"


@pytest.mark.parametrize("value", [b"", b"\0\0\0\0", b"\x01\0\0\0\x01\x02", b"{}xxxxx"])
def test_a_value_without_a_frame_is_bad(value: bytes) -> None:
    for one in (decoder("avro", V1, framing="confluent"), decoder("json", "n int", framing="confluent")):
        assert reason_of(one, value).startswith("the value does not begin with a schema registry's frame")


def test_frames_are_read_over_without_a_registry() -> None:
    assert rows_of(decoder("avro", V1, framing="confluent"), [frame(5, b"\x02"), None]) == [{"n": 1}, None]
    assert rows_of(decoder("json", "n int", framing="confluent"), [frame(5, b'{"n":1}')]) == [{"n": 1}]


PROTO = """syntax = "proto3"; package p;
message A { int32 n = 1; message In { int32 k = 1; message Deep { string s = 1; } } }
message B { string s = 1; }"""


@pytest.mark.parametrize(
    ("message", "path", "data", "row"),
    [
        (None, b"\x00", b"\x08\x05", {"n": 5}),
        ("A", b"\x02\x00", b"\x08\x05", {"n": 5}),
        ("B", b"\x02\x02", b"\x0a\x01x", {"s": "x"}),
        ("A.In", b"\x04\x00\x00", b"\x08\x05", {"k": 5}),
        ("Deep", b"\x06\x00\x00\x00", b"\x0a\x01x", {"s": "x"}),
    ],
)
def test_protobuf_rows_say_which_message_they_are(
    message: str | None, path: bytes, data: bytes, row: dict[str, Any]
) -> None:
    one = decoder("protobuf", PROTO, message=message, registry=known({4: ("PROTOBUF", PROTO)}))
    assert rows_of(one, [frame(4, path + data)]) == [row]


def test_other_messages_and_ways_that_lead_nowhere_are_bad() -> None:
    one = decoder("protobuf", PROTO, message="B", registry=known({4: ("PROTOBUF", PROTO)}))
    bodies = [b"\x00", b"\x02\x06", b"\x01", b"\x02\x03", b"\x04\x02", b"", b"\x02\x02\x0a\x01y"]
    decoded = decode(one, [frame(4, body) for body in bodies])
    assert decoded.struct.to_pylist() == [None] * 6 + [{"s": "y"}]
    nowhere = "the way to the Protobuf message behind the schema id cannot be read"
    assert decoded.reasons == (
        "schema 4: the message is p.A, not p.B",
        "schema 4: the message is unknown, not p.B",
        *([nowhere] * 4),
    )


def test_protobuf_schemas_import_what_they_refer_to() -> None:
    registry = FakeRegistry()
    registry.add(1, "money", 1, 'syntax = "proto3"; package m; message Money { int64 cents = 1; }', "PROTOBUF")
    main = 'syntax = "proto3"; import "m/money.proto"; message Order { m.Money price = 1; }'
    references = [{"name": "m/money.proto", "subject": "money", "version": 1}]
    registry.add(2, "orders-value", 1, main, "PROTOBUF", references)
    with serving(registry):
        spec = DecodeSpec.of("protobuf", registry=RegistrySpec(registry.url)).with_subject("orders").loaded()
        assert rows_of(Decoder.of(spec), [frame(2, b"\x00\x0a\x02\x08\x07")]) == [{"price": {"cents": 7}}]
