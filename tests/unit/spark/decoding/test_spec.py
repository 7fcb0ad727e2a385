"""What is to be decoded, as the user says it: checked before anything is read, secrets kept out of texts."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from lowwater.spark.decoding.errors import DecodeError, UndecodableRowError
from lowwater.spark.decoding.spec import DecodeSpec, RegistrySpec


def parse(**options: str) -> DecodeSpec:
    given = {name.replace("_", "."): text for name, text in options.items()}
    spec = DecodeSpec.parse(given)
    assert spec is not None
    return spec


def test_options_without_decode_are_none() -> None:
    assert DecodeSpec.parse({"subscribe": "orders", "decoder": "x"}) is None


def test_options_become_a_spec() -> None:
    spec = parse(decode="JSON", decode_schema="a int", decode_column="key", decode_onbad="null")
    assert spec == DecodeSpec("json", "key", schema="a int", on_bad="null")
    assert (spec.raw_column, spec.error_column) == ("key_raw", "key_error")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"decode_schema": "a int"}, "decode is missing beside decode.schema"),
        ({"decode": "xml", "decode_schema": "a"}, "decode is 'xml', but one of json, avro, protobuf is possible"),
        ({"decode": "json"}, "decode.schema is needed for JSON"),
        ({"decode": "avro"}, "decode.schema is needed, or decode.schemaFile, or decode.registry.url"),
        ({"decode": "avro", "decode_shema": "x"}, "decode.shema is not an option of decode"),
        ({"decode": "avro", "decode_schema": "x", "decode_schemafile": "y"}, "exclude each other"),
        ({"decode": "avro", "decode_schema": "x", "decode_message": "M"}, "decode.message is for Protobuf only"),
        ({"decode": "json", "decode_schema": "x", "decode_emitdefaults": "true"}, "emitDefaults is for Protobuf only"),
        ({"decode": "json", "decode_schema": "x", "decode_onbad": "drop"}, "decode.onBad is 'drop', but one of fail"),
        ({"decode": "json", "decode_schema": "x", "decode_framing": "azure"}, "decode.framing is 'azure'"),
        ({"decode": "json", "decode_schema": "x", "decode_column": "topic"}, "decode.column is 'topic'"),
        ({"decode": "protobuf", "decode_schema": "x", "decode_emitdefaults": "yes"}, "decode.emitDefaults is 'yes'"),
        ({"decode": "avro", "decode_registry_user": "u"}, "decode.registry.url is missing"),
        ({"decode": "avro", "decode_registry_url": "ftp://x"}, "has to begin with http"),
        ({"decode": "avro", "decode_registry_url": "http://"}, "names no host"),
        ({"decode": "avro", "decode_registry_url": "http://u:p@x"}, "must not hold a login"),
        ({"decode": "avro", "decode_registry_url": "http://x", "decode_registry_user": "u"}, "goes with a password"),
        ({"decode": "avro", "decode_registry_url": "http://x", "decode_registry_version": "0"}, "a number from 1"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        parse(**options)


def test_a_registry_means_frames_unless_said_otherwise() -> None:
    registry = {"decode": "avro", "decode_registry_url": "http://registry:8081"}
    assert parse(**registry).is_framed
    assert not parse(**registry, decode_framing="none").is_framed
    assert not parse(decode="avro", decode_schema="x").is_framed
    assert parse(decode="avro", decode_schema="x", decode_framing="confluent").is_framed


def test_the_subject_follows_the_topic_unless_it_was_given() -> None:
    spec = parse(decode="avro", decode_registry_url="http://registry:8081")
    named = spec.with_subject("orders")
    assert named.registry is not None
    assert named.registry.subject == "orders-value"
    assert named.with_subject("payments") == named


def test_secrets_are_in_no_text_but_travel() -> None:
    spec = DecodeSpec.of("avro", registry=RegistrySpec("http://r", "u", "sesame"))
    assert "sesame" not in repr(spec) + str(spec)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_an_unknown_field_is_a_wrong_wish() -> None:
    with pytest.raises(DecodeError, match="colour"):
        DecodeSpec.of("json", schema="a int", colour="red")


def test_a_schema_comes_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.ddl").write_text("a int")
    spec = parse(decode="json", decode_schemafile=str(tmp_path / "a.ddl")).loaded()
    assert (spec.schema, spec.schema_file) == ("a int", None)
    (tmp_path / "m.proto").write_text('import "sub/n.proto"; message M { optional N n = 1; }')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/n.proto").write_text("message N { optional int32 a = 1; }")
    proto = parse(decode="protobuf", decode_schemafile=str(tmp_path / "m.proto")).loaded()
    assert proto.references == (("sub/n.proto", "message N { optional int32 a = 1; }"),)
    (tmp_path / "m.desc").write_bytes(b"\x0a\x00\xff")
    assert parse(decode="protobuf", decode_schemafile=str(tmp_path / "m.desc")).loaded().schema == b"\x0a\x00\xff"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"decode.schemaFile: .*gone.json cannot be read: No such file"):
        parse(decode="avro", decode_schemafile=str(tmp_path / "gone.json")).loaded()
    (tmp_path / "odd.json").write_bytes(b"\xff")
    with pytest.raises(DecodeError, match="is not text in UTF-8"):
        parse(decode="avro", decode_schemafile=str(tmp_path / "odd.json")).loaded()


def test_a_row_that_cannot_be_decoded_says_where_also_after_a_journey() -> None:
    error = UndecodableRowError("value", "orders", 3, 17, "the JSON ends too early")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert str(error).startswith("the value of orders-3 at offset 17 cannot be decoded: the JSON ends too early; ")
    assert (again.topic, again.partition, again.offset, again.reason) == ("orders", 3, 17, "the JSON ends too early")
