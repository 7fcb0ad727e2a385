"""The declaration language: what a declared class is, and what its codecs accept and refuse."""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lowwater.errors import WireError
from lowwater.wire.arrays import REMEMBERED_MAX, lists_written
from lowwater.wire.schema import (
    REQUEST_OBJECTS_MAX,
    ZERO_UUID,
    Bool,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    RecordsParts,
    String,
    UInt16,
    UInt32,
    Uuid,
    between,
    decoder,
    encoder,
    fields_of,
    holds_records,
    message,
    new,
    parts_encoder,
    since,
    struct,
    tagged,
    until,
)
from lowwater.wire.varint import write_uvarint


@struct
class Point:
    x: Int32 = -1
    y: Int32 = -1


@struct
class Row:
    name: String
    scores: list[Int32] = since(0)
    point: Point | None = tagged(0, since=2)


@message(key=900, versions=(0, 3), flexible=2)
class SampleRequest:
    title: String
    old: Int16 = until(0, default=7)
    middle: Int8 = between(1, 2, ignorable=True)
    note: String | None = since(0, null=1)
    rows: list[Row]
    blob: Bytes | None = None
    cursor: Point | None = since(3)
    mark: Int64 = tagged(1, since=2, default=-1)
    words: list[String] = tagged(0, since=2, ignorable=True)


@message(key=902, versions=(0, 0), flexible=0)
class StoredValue:
    place: Point | None = tagged(0, since=0, null=0, default=Point)
    epochs: list[Int32] | None = tagged(1, since=0, default=[])


@message(key=903, versions=(0, 0), flexible=None, from_client=True)
class Told:
    text: String


@message(key=901, versions=(0, 1), flexible=1)
class EveryTypeRequest:
    flag: Bool
    i8: Int8
    i16: Int16
    i32: Int32
    i64: Int64
    u16: UInt16
    u32: UInt32
    f64: Float64
    uuid: Uuid
    text: String
    blob: Bytes
    ids: list[Uuid]
    names: list[String]
    inline: Point


@message(key=905, versions=(0, 1), flexible=1)
class SmallRequest:
    blob: Bytes
    ratios: list[Float64] = since(0)


@struct
class Batch:
    index: Int32
    records: RecordsParts | None = None


@message(key=902, versions=(0, 1), flexible=1)
class BatchesRequest:
    head: String
    batches: list[Batch]
    tail: Int32 = 0


@message(key=903, versions=(0, 1), flexible=1)
class OneBatchRequest:
    records: Records | None


@contextmanager
def traced() -> Iterator[list[int]]:
    """A list that holds the peak of allocated bytes when the block has ended."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


def encoded(sample: Any, version: int) -> bytes:
    return encoder(type(sample), version)(sample)


def round_trip(sample: Any, version: int) -> Any:
    return decoder(type(sample), version)(memoryview(encoded(sample, version)))


def every_type() -> EveryTypeRequest:
    return EveryTypeRequest(
        flag=True,
        i8=-128,
        i16=-2,
        i32=-3,
        i64=-(1 << 63),
        u16=0xFFFF,
        u32=0xFFFFFFFF,
        f64=-1.5,
        uuid=bytes(range(16)),
        text="grüße 🌊",
        blob=b"\0\xff",
        ids=[bytes(range(16)), ZERO_UUID],
        names=["", "b"],
        inline=Point(x=4, y=5),
    )


class TestDeclaredClass:
    def test_fields_that_are_not_given_have_their_defaults(self) -> None:
        sample = SampleRequest(title="t", rows=[])
        assert (sample.old, sample.middle, sample.note, sample.mark, sample.words) == (7, 0, None, -1, [])

    def test_a_bare_field_is_zero_at_run_time(self) -> None:
        sample = new(EveryTypeRequest)
        assert (sample.flag, sample.i8, sample.f64, sample.text, sample.uuid) == (False, 0, 0.0, "", ZERO_UUID)
        assert sample.inline == Point(x=-1, y=-1)

    def test_lists_and_structs_are_not_shared_between_instances(self) -> None:
        one, two = new(EveryTypeRequest), new(EveryTypeRequest)
        one.names.append("x")
        one.inline.x = 9
        assert (two.names, two.inline.x) == ([], -1)

    def test_there_are_no_other_attributes(self) -> None:
        with pytest.raises(AttributeError):
            Point().z = 1  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="z"):
            Point(z=1)  # type: ignore[call-arg]

    def test_equality_is_by_class_and_value(self) -> None:
        assert Point(x=1) == Point(x=1)
        assert Point(x=1) != Point(x=2)
        assert Point() != Batch(index=0)

    def test_repr_shows_the_fields(self) -> None:
        assert repr(Point(x=1)) == "Point(x=1, y=-1)"

    def test_fields_are_listed_in_order_with_their_structs(self) -> None:
        fields = fields_of(SampleRequest)
        assert [field.name for field in fields][:4] == ["title", "old", "middle", "note"]
        assert {field.name: field.struct for field in fields if field.struct} == {"rows": Row, "cursor": Point}

    def test_records_are_found_at_any_depth(self) -> None:
        assert holds_records(BatchesRequest)
        assert not holds_records(SampleRequest)

    def test_a_type_that_the_wire_does_not_have_is_refused(self) -> None:
        @struct
        class Wrong:
            value: dict[str, int]

        with pytest.raises(TypeError, match="not a type that a message can hold"):
            fields_of(Wrong)


class TestVersions:
    def test_every_type_survives_in_both_forms(self) -> None:
        for version in (0, 1):
            assert round_trip(every_type(), version) == every_type()

    def test_a_fixed_form_by_hand(self) -> None:
        sample = SampleRequest(title="ab", old=1, note="n", rows=[Row(name="r", scores=[1, -1])], blob=b"z")
        want = "00026162 0001 00016e 00000001 000172 00000002 00000001 ffffffff 00000001 7a"
        assert encoded(sample, 0).hex() == want.replace(" ", "")

    def test_a_flexible_form_by_hand(self) -> None:
        sample = SampleRequest(
            title="ab", middle=5, rows=[Row(name="r", scores=[1], point=Point(x=2))], mark=3, words=["w"]
        )
        row = "0272 02 00000001 01 00 09 00000002 ffffffff 00"
        want = f"036162 05 00 02 {row} 00 02 00 03 02 0277 01 08 0000000000000003"
        assert encoded(sample, 2).hex() == want.replace(" ", "")

    def test_a_nullable_struct_has_a_marker(self) -> None:
        assert encoded(SampleRequest(title="", rows=[]), 3).hex() == "0100 0100 ff00".replace(" ", "")
        with_cursor = SampleRequest(title="", rows=[], cursor=Point(x=0, y=1))
        assert encoded(with_cursor, 3).hex() == "0100 0100 01 00000000 00000001 00 00".replace(" ", "")
        assert round_trip(with_cursor, 3) == with_cursor

    def test_a_tagged_field_at_its_default_is_left_out(self) -> None:
        plain = encoded(SampleRequest(title="", rows=[Row(name="")]), 2)
        assert encoded(SampleRequest(title="", rows=[Row(name="", point=Point())], mark=-1, words=[]), 2) == plain

    @pytest.mark.parametrize(
        ("value", "wanted"),
        [
            (StoredValue(), "00"),
            (StoredValue(place=None), "01 00 01 00"),
            (StoredValue(place=Point(x=2)), "01 00 0a 01 00000002 ffffffff 00"),
            (StoredValue(epochs=None), "01 01 01 00"),
            (StoredValue(epochs=[7]), "01 01 05 02 00000007"),
            (StoredValue(place=None, epochs=None), "02 00 01 00 01 01 00"),
        ],
    )
    def test_null_in_a_tag_is_said_when_it_is_not_the_default(self, value: StoredValue, wanted: str) -> None:
        assert encoded(value, 0).hex() == wanted.replace(" ", "")
        assert round_trip(value, 0) == value

    def test_what_clients_say_may_have_bytes_behind_it(self) -> None:
        assert decoder(Told, 0)(memoryview(b"\0\1a and more")) == Told(text="a")
        with pytest.raises(WireError, match="left over"):
            decoder(StoredValue, 0)(memoryview(b"\0 and more"))

    def test_a_missing_tagged_field_has_its_default(self) -> None:
        read = round_trip(SampleRequest(title="", rows=[Row(name="")]), 2)
        assert (read.mark, read.words, read.rows[0].point) == (-1, [], None)

    def test_unknown_tagged_fields_are_skipped(self) -> None:
        data = encoded(SampleRequest(title="", rows=[Row(name="r")]), 2)
        inner = data.replace(b"\x02r\x01\x00", b"\x02r\x01\x01\x05\x02ab")
        assert inner != data
        assert decoder(SampleRequest, 2)(memoryview(inner)) == decoder(SampleRequest, 2)(memoryview(data))
        outer = data[:-1] + b"\x02\x01\x08" + (4).to_bytes(8, "big") + b"\xff\x01\x03xyz"
        assert decoder(SampleRequest, 2)(memoryview(outer)).mark == 4

    def test_a_value_the_version_lacks_is_refused(self) -> None:
        with pytest.raises(ValueError, match="v1 cannot carry old"):
            encoded(SampleRequest(title="", rows=[], old=8), 1)
        with pytest.raises(ValueError, match="v1 cannot carry mark"):
            encoded(SampleRequest(title="", rows=[], mark=0), 1)
        with pytest.raises(ValueError, match="v1 cannot carry point"):
            encoded(SampleRequest(title="", rows=[Row(name="", point=Point(x=1))]), 1)

    def test_an_ignorable_value_the_version_lacks_is_dropped(self) -> None:
        sample = SampleRequest(title="", note="", rows=[], middle=4, words=["w"])
        assert round_trip(sample, 0) == SampleRequest(title="", note="", rows=[])

    def test_a_version_that_does_not_exist_is_an_error(self) -> None:
        for make in (decoder, encoder, parts_encoder):
            with pytest.raises(ValueError, match="versions 0 to 3, not 4"):
                make(SampleRequest, 4)

    def test_codecs_are_made_once(self) -> None:
        assert decoder(SampleRequest, 1) is decoder(SampleRequest, 1)
        assert encoder(SampleRequest, 1) is encoder(SampleRequest, 1)


class TestLists:
    @pytest.mark.parametrize("version", [0, 1])
    @pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 126, 127, 128, 1000])
    def test_a_list_of_any_length(self, version: int, count: int) -> None:
        sample = SmallRequest(blob=b"", ratios=[float(each) for each in range(count)])
        assert round_trip(sample, version) == sample

    def test_a_list_that_was_written_before_is_written_by_its_values(self) -> None:
        positive, negative = (encoded(SmallRequest(blob=b"", ratios=[zero]), 1) for zero in (0.0, -0.0))
        assert positive != negative

    def test_only_so_many_lists_are_remembered(self) -> None:
        lists = lists_written("i", 1)
        for each in range(3 * REMEMBERED_MAX):
            assert lists[each,] == b"\x02" + each.to_bytes(4, "big")
        assert len(lists) <= REMEMBERED_MAX
        assert lists[tuple(range(1000))] not in lists.values()


class TestRefusedValues:
    @pytest.mark.parametrize("version", [0, 1])
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("i8", 128),
            ("i16", "1"),
            ("u16", -1),
            ("text", None),
            ("text", "x" * 32768),
            ("ids", None),
            ("inline", None),
        ],
    )
    def test_a_value_that_does_not_fit_is_a_value_error(self, version: int, field: str, value: Any) -> None:
        sample = every_type()
        setattr(sample, field, value)
        with pytest.raises(ValueError, match=r"EveryTypeRequest|too long"):
            encoded(sample, version)

    def test_null_before_the_version_that_allows_it(self) -> None:
        with pytest.raises(ValueError, match="v0"):
            encoded(SampleRequest(title="", rows=[], note=None), 0)

    def test_the_longest_string_fits(self) -> None:
        for version in (0, 1):
            sample = every_type()
            sample.text = "x" * 32767
            assert round_trip(sample, version) == sample


class TestRefusedBytes:
    @pytest.mark.parametrize(
        ("version", "data", "why"),
        [
            (0, "ffff", "length of -1"),
            (0, "000361", "cannot be read"),
            (0, "0001ff 0000 0000 00000000 ffffffff", "cannot be read"),
            (0, "0000 0000 ffff", "length of -1"),
            (0, "0000 0000 0000 80000000", "count of -2147483648"),
            (0, "0000 0000 0000 00000002 0000", "count of 2"),
            (0, "0000 0000 0000 00000001 0000 7fffffff 0000", "count of 2147483647"),
            (0, "0000 0000 0000 00000000 00000005 61", "5 bytes announced"),
            (0, "0000 0000 0000 00000000 fffffffe", "length of -2"),
            (2, "00", "null where a string"),
            (2, "ffffffffff01", "more than 5 bytes"),
            (2, "81800200", "compact string claims 32768"),
            (2, "01 00 00 00", "count of -1"),
            (2, "01 00 00 ffffffff07 00", "count of 21"),
            (2, "01 00 00 02 01 00 00 00", "count of -1"),
            (2, "01 00 00 02 01 7f 00 00 00", "count of 126"),
            (2, "01 00 00 01 00 ff01", "255 tagged fields"),
            (2, "01 00 00 01 00 01 09 05 61", "announced"),
            (2, "01 00 00 01 00 01 01 07 0000000000000003", "does not fill"),
            (2, "01 00 00 01 00 01 01 09 0000000000000003 00", "does not fill"),
        ],
    )
    def test_malformed_input_is_a_wire_error(self, version: int, data: str, why: str) -> None:
        with pytest.raises(WireError, match=why):
            decoder(SampleRequest, version)(memoryview(bytes.fromhex(data)))

    @pytest.mark.parametrize(
        ("version", "data", "why"),
        [
            (0, "ffffffff 00000000", "length of -1"),
            (1, "00 01 00", "null where bytes"),
            (1, "8000 01 00", "null where bytes"),
            (1, "01 01 01 09 05 6162", "ends early"),
        ],
    )
    def test_malformed_bytes_and_tags_are_a_wire_error(self, version: int, data: str, why: str) -> None:
        with pytest.raises(WireError, match=why):
            decoder(SmallRequest, version)(memoryview(bytes.fromhex(data)))

    def test_bytes_behind_a_request_are_ignored(self) -> None:
        data = encoded(SampleRequest(title="t", rows=[]), 2)
        assert decoder(SampleRequest, 2)(memoryview(data + b"abc")) == SampleRequest(title="t", rows=[])

    def test_a_response_must_end_where_it_ends(self) -> None:
        @message(key=904, versions=(0, 0), flexible=None)
        class SmallResponse:
            value: Int16

        with pytest.raises(WireError, match="left over"):
            decoder(SmallResponse, 0)(memoryview(b"\0\1\2"))

    def test_a_request_cannot_bring_more_objects_than_its_budget(self) -> None:
        count = REQUEST_OBJECTS_MAX + 1
        rows = b"\x01\x00\x00" + write_uvarint(count + 1) + b"\x01\x01\x00" * count + b"\x00\x00"
        with pytest.raises(WireError, match=f"count of {count}"):
            decoder(SampleRequest, 2)(memoryview(rows))

    def test_a_list_beyond_the_budget_is_refused_before_it_is_made(self) -> None:
        count = 20 * REQUEST_OBJECTS_MAX
        data = b"\x01" + write_uvarint(count + 1) + bytes(8 * count)
        with pytest.raises(WireError, match=f"count of {count}"), traced() as peak:
            decoder(SmallRequest, 1)(memoryview(data))
        assert peak[0] < len(data) + 1_000_000

    @pytest.mark.parametrize("length", [1, 15, 125])
    def test_the_budget_is_shared_by_all_lists_of_a_request(self, length: int) -> None:
        def of_rows(count: int) -> bytes:
            row = b"\x01" + bytes([length + 1]) + bytes(4 * length) + b"\x00"
            return b"\x01\x00\x00" + write_uvarint(count + 1) + row * count + b"\x00\x00"

        fits = REQUEST_OBJECTS_MAX // (length + 2)
        assert len(decoder(SampleRequest, 2)(memoryview(of_rows(fits))).rows) == fits
        with pytest.raises(WireError, match=r"too many elements|count of"):
            decoder(SampleRequest, 2)(memoryview(of_rows(REQUEST_OBJECTS_MAX // length)))

    def test_the_densest_message_takes_memory_in_proportion(self) -> None:
        count = 16_000
        data = b"\x01\x00\x00" + write_uvarint(count + 1) + b"\x01\x01\x00" * count + b"\x00\x00"
        decode = decoder(SampleRequest, 2)
        with traced() as peak:
            read = decode(memoryview(data))
        assert len(read.rows) == count
        assert peak[0] < 100 * len(data)


class TestRecords:
    def test_records_are_read_without_a_copy(self) -> None:
        frame = bytearray(encoded(OneBatchRequest(records=memoryview(b"batch")), 1))
        read = decoder(OneBatchRequest, 1)(memoryview(frame))
        assert read.records is not None
        read.records[0:1] = b"B"
        assert b"Batch" in frame

    @pytest.mark.parametrize("version", [0, 1])
    def test_records_are_written_without_a_copy(self, version: int) -> None:
        big, small = bytearray(b"x" * 1000), memoryview(b"yz")
        sample = BatchesRequest(head="h", batches=[Batch(index=1, records=[big, small]), Batch(index=2, records=small)])
        parts = parts_encoder(BatchesRequest, version)(sample)
        assert [part for part in parts if part is big or part is small] == [big, small, small]
        assert b"".join(parts) == encoded(sample, version)
        read = round_trip(sample, version)
        assert [bytes(batch.records) for batch in read.batches] == [bytes(big) + b"yz", b"yz"]

    @pytest.mark.parametrize("version", [0, 1])
    def test_no_records_empty_records_and_null_differ_only_where_they_should(self, version: int) -> None:
        for records, want in ((None, None), (b"", b""), ([], b"")):
            sample = BatchesRequest(head="", batches=[Batch(index=1, records=records)])
            assert round_trip(sample, version).batches[0].records == want

    def test_a_message_without_records_is_one_part(self) -> None:
        sample = SampleRequest(title="t", rows=[])
        assert parts_encoder(SampleRequest, 2)(sample) == [encoded(sample, 2)]
