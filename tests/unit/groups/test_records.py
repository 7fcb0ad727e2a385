"""Records of `__consumer_offsets`, and that the short ways give the same bytes as the long ones."""

import pytest

from lowwater.errors import WireError
from lowwater.groups.record_schemas import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from lowwater.groups.records import decode, encode, forget_offset, offset_key, offset_value, read_offset_value
from lowwater.outcome import StateRecord
from lowwater.wire.schema import encoder

KEY = OffsetCommitKey(group="grüppe", topic="t", partition=7)
VALUE = OffsetCommitValue(offset=1 << 40, leader_epoch=3, metadata="notiz €", commit_timestamp=1_700_000_000_000)


def test_a_committed_offset_has_the_bytes_of_kafka() -> None:
    record = StateRecord(offset_key("g", "t", 1), offset_value(5, 2, "m", 9))
    assert record.key == bytes.fromhex("0001 000167 000174 00000001")
    assert record.value == bytes.fromhex("0004 0000000000000005 00000002 026d 0000000000000009 00")


def test_the_short_way_to_write_a_committed_offset_gives_the_same_bytes() -> None:
    short = StateRecord(
        offset_key("grüppe", "t", 7), offset_value(VALUE.offset, 3, VALUE.metadata, VALUE.commit_timestamp)
    )
    assert short == encode(KEY, VALUE)
    assert decode(short) == (KEY, VALUE)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4096])
@pytest.mark.parametrize("topic_id", [bytes(16), bytes(range(16))])
def test_notes_of_every_length_are_written_and_read(size: int, topic_id: bytes) -> None:
    value = OffsetCommitValue(offset=5, leader_epoch=1, metadata="n" * size, commit_timestamp=9, topic_id=topic_id)
    short = offset_value(5, 1, value.metadata, 9, topic_id)
    assert short == encode(KEY, value).value
    assert read_offset_value(short) == value


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_committed_offset_is_read(version: int) -> None:
    expected = OffsetCommitValue(
        offset=5,
        leader_epoch=3 if version >= 3 else -1,
        metadata="m",
        commit_timestamp=9,
        expire_timestamp=11 if version == 1 else -1,
        topic_id=bytes(range(16)) if version == 4 else bytes(16),
    )
    value = version.to_bytes(2) + encoder(OffsetCommitValue, version)(expected)
    assert decode(StateRecord(offset_key("g", "t", 1), value)) == (
        OffsetCommitKey(group="g", topic="t", partition=1),
        expected,
    )


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (OffsetCommitValue(offset=1, commit_timestamp=2), 4),
        (OffsetCommitValue(offset=1, commit_timestamp=2, expire_timestamp=3), 1),
        (OffsetCommitValue(offset=1, commit_timestamp=2, topic_id=bytes(range(16))), 4),
    ],
)
def test_a_committed_offset_is_written_in_the_version_that_can_say_it(value: OffsetCommitValue, version: int) -> None:
    record = encode(KEY, value)
    assert record.value is not None
    assert int.from_bytes(record.value[:2]) == version
    assert decode(record) == (KEY, value)


def test_a_forgotten_key_has_no_value() -> None:
    assert decode(forget_offset("grüppe", "t", 7)) == (KEY, None)
    assert encode(KEY, None) == forget_offset("grüppe", "t", 7)


def test_a_classic_group_is_read_as_it_was_written() -> None:
    member = MemberMetadata(
        member_id="m-1",
        group_instance_id="i",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=30_000,
        subscription=b"s",
        assignment=b"a",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m-1",
        current_state_timestamp=8,
        members=[member],
    )
    key = GroupMetadataKey(group="g")
    record = encode(key, value)
    assert record.value is not None
    assert record.value[:2] == b"\0\3"
    assert decode(record) == (key, value)


def test_a_key_of_kafka_0_8_is_read() -> None:
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=1)
    assert decode(encode(key, None)) == (key, None)


@pytest.mark.parametrize("key", [b"\0\x09\0\1g", b"\0\x11anything", b"\xff\xff", b"\0", b""])
def test_a_key_of_another_kind_is_skipped(key: bytes) -> None:
    assert decode(StateRecord(key, b"\0\0")) is None


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_record_cut_short_is_refused(cut: int) -> None:
    record = encode(KEY, VALUE)
    assert record.value is not None
    with pytest.raises(WireError):
        decode(StateRecord(record.key[:-cut], record.value))
    with pytest.raises(WireError):
        decode(StateRecord(record.key, record.value[:-cut]))


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\5", b"\xff\xff", b"\0\x04" + bytes(12) + b"\x03" + bytes(8)])
def test_a_value_that_cannot_be_understood_is_refused(value: bytes) -> None:
    with pytest.raises(WireError):
        decode(StateRecord(offset_key("g", "t", 1), value))


def test_a_note_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(WireError):
        read_offset_value(offset_value(1, 1, "x", 1).replace(b"x", b"\xff"))


def test_a_name_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(WireError):
        decode(StateRecord(bytes.fromhex("0001 0001ff 000174 00000001"), offset_value(1, 1, "", 1)))
