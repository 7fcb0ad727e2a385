"""Offsets of a query, as they stand in Spark's checkpoint."""

from __future__ import annotations

import json
import pickle

import pytest

from lowwater.client.errors import TopicRecreatedError
from lowwater.spark.offsets import (
    Bound,
    NewerOffsetError,
    Offset,
    OffsetError,
    Place,
    Plan,
    Range,
    UnfinishedAdoptionError,
    advance,
    check_ids,
    ranges,
)
from lowwater.types import TopicPartition

A0, A1, A2, B0 = (TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("b", 0))
ID_A, ID_B, OTHER = "f9Gx2kq0T1i8mO3bq7n0Yw", "AAAAAAAAQACAAAAAAAAAAA", "AAAAAAAAQACAAAAAAAAAAQ"
LINEAGE = "5f2c9a1e"
INITIAL = Offset.initial({A0: 5, A1: 0}, {"a": ID_A}, LINEAGE)


def text(offset: Offset) -> str:
    return json.dumps(offset.to_json())


def parsed(written: str) -> Offset:
    return Offset.parse(json.loads(written))


# ---- the text


def test_the_text_is_as_the_format_says():
    end = advance(INITIAL, {A0: 9, A1: 0}, {}, ids={"a": ID_A})
    assert text(end) == (
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"id": "f9Gx2kq0T1i8mO3bq7n0Yw", '
        '"at": {"0": 9, "1": 0}, "begin": {"0": 5, "1": 0}}}}'
    )


def test_the_initial_offset_says_so():
    assert text(INITIAL) == (
        '{"lowwater": 1, "lineage": "5f2c9a1e", "initial": true, "topics": {"a": {"id": "f9Gx2kq0T1i8mO3bq7n0Yw", '
        '"at": {"0": 5, "1": 0}}}}'
    )
    assert parsed(text(INITIAL)) == INITIAL


def test_an_offset_without_partitions_has_no_topics():
    empty = Offset.initial({}, {}, LINEAGE)
    assert text(empty) == '{"lowwater": 1, "lineage": "5f2c9a1e", "initial": true}'
    assert parsed(text(empty)) == empty


def test_the_text_does_not_depend_on_the_order_in_which_partitions_came():
    tenth = TopicPartition("a", 10)
    one = Offset.initial({B0: 1, tenth: 2, A2: 3}, {"b": ID_B, "a": ID_A}, LINEAGE)
    other = Offset.initial({A2: 3, B0: 1, tenth: 2}, {"a": ID_A, "b": ID_B}, LINEAGE)
    assert text(one) == text(other)
    assert list(one.to_json()["topics"]["a"]["at"]) == ["2", "10"]


def test_ids_of_topics_that_are_not_read_are_left_out():
    assert Offset.initial({A0: 0}, {"a": ID_A, "b": ID_B}, LINEAGE).ids == {"a": ID_A}


def test_a_topic_without_an_id_has_none_in_the_text():
    assert "id" not in Offset.initial({A0: 0}, {}, LINEAGE).to_json()["topics"]["a"]


def test_an_offset_survives_pickling():
    assert pickle.loads(pickle.dumps(INITIAL)) == INITIAL


@pytest.mark.parametrize(
    "written",
    [
        '{"lowwater": 0, "lineage": "5f2c9a1e"}',
        '{"lowwater": true, "lineage": "5f2c9a1e"}',
        '{"lowwater": 1}',
        '{"lowwater": 1, "lineage": "5F2C9A1E"}',
        '{"lowwater": 1, "lineage": 7}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "initial": 1}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": []}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": -1}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 1.5}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": true}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"00": 1}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"-1": 1}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"2147483648": 1}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 9223372036854775808}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 1}, "id": "short"}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 1}, "begin": {"1": 0}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 1}, "begin": {"0": 2}}}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "initial": true, "topics": {"a": {"at": {"0": 1}, "begin": {"0": 0}}}}',
        '{"a": 7}',
        '{"a": {"0": "7"}}',
        '{"a": {"x": 7}}',
        '{"lowwater": "1"}',
    ],
)
def test_what_nobody_wrote_is_refused(written):
    with pytest.raises(OffsetError, match="neither Lowwater nor the Kafka connector wrote"):
        parsed(written)


def test_a_later_format_is_refused_by_its_number():
    with pytest.raises(NewerOffsetError, match=r"format 2 .* install"):
        parsed('{"lowwater": 2, "anything": {}}')


@pytest.mark.parametrize(
    "written",
    [
        '{"lowwater": 1, "lineage": "5f2c9a1e", "plans": {"cut": 5}}',
        '{"lowwater": 1, "lineage": "5f2c9a1e", "topics": {"a": {"at": {"0": 1}, "epoch": 3}}}',
    ],
)
def test_a_part_that_is_not_known_is_not_passed_over(written):
    with pytest.raises(NewerOffsetError, match=r"plan|epoch"):
        parsed(written)


# ---- one batch after the other


def test_the_end_of_the_first_batch_carries_where_it_began():
    end = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={"a": ID_A})
    assert end.begin == {A0: 5, A1: 0}
    assert not end.is_initial
    assert ranges(INITIAL, end) == {A0: Range(5, 9), A1: Range(0, 3)}


def test_the_first_batch_is_the_same_when_the_query_would_begin_elsewhere_now():
    end = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    now = Offset.initial({A0: 7, A1: 3, A2: 0}, {"a": ID_A}, "00000000")
    assert ranges(now, parsed(text(end))) == ranges(INITIAL, end)


def test_later_ends_do_not_carry_it_on():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    second = advance(first, {A0: 10, A1: 3}, {}, ids={})
    assert second.begin == {}
    assert ranges(first, second) == {A0: Range(9, 10), A1: Range(3, 3)}


def test_a_new_partition_carries_its_beginning_once():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    second = advance(first, {A0: 9, A1: 3, B0: 8}, {B0: 2}, ids={"b": ID_B})
    assert second.begin == {B0: 2}
    assert second.ids == {"a": ID_A, "b": ID_B}
    assert ranges(first, second)[B0] == Range(2, 8)


def test_nothing_to_read_is_the_same_offset():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    assert advance(first, {A0: 9, A1: 3}, {}, ids={}) is first
    assert advance(INITIAL, {A0: 5, A1: 0}, {}, ids={}) is INITIAL


def test_a_new_partition_without_records_makes_no_batch_of_its_own():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    assert advance(first, {A0: 9, A1: 3, B0: 0}, {B0: 0}, ids={}) is first
    assert advance(first, {A0: 10, A1: 3, B0: 0}, {B0: 0}, ids={}).begin == {B0: 0}


def test_no_partition_goes_back():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    assert advance(first, {A0: 4, A1: 5}, {}, ids={}).at == {A0: 9, A1: 5}


def test_a_partition_that_is_not_there_keeps_its_place():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={})
    second = advance(first, {A1: 5}, {}, ids={})
    assert ranges(first, second) == {A0: Range(9, 9), A1: Range(3, 5)}


def test_a_first_batch_without_records_reads_nothing_whatever_its_start():
    now = Offset.initial({A0: 1, A1: 0}, {}, "00000000")
    assert ranges(now, INITIAL) == {A0: Range(5, 5), A1: Range(0, 0)}


def test_the_batch_after_a_first_one_without_records_begins_where_that_stood():
    end = advance(parsed(text(INITIAL)), {A0: 6, A1: 0}, {}, ids={})
    assert ranges(INITIAL, end) == {A0: Range(5, 6), A1: Range(0, 0)}


def test_a_partition_that_begins_nowhere_is_an_error():
    start, end = Offset({A0: 1}, lineage=LINEAGE), Offset({A0: 2, A1: 2}, lineage=LINEAGE)
    with pytest.raises(OffsetError, match="where a-1 ends in a batch, but not where it begins"):
        ranges(start, end)


def test_the_answer_of_a_fresh_start_is_no_beginning():
    with pytest.raises(OffsetError, match="not where it begins"):
        ranges(INITIAL, Offset({A0: 9}, lineage=LINEAGE))


def test_a_batch_that_goes_backward_is_an_error():
    with pytest.raises(OffsetError, match="from 9 back to 4 in a-0"):
        ranges(Offset({A0: 9}, lineage=LINEAGE), Offset({A0: 4}, lineage=LINEAGE))


def test_a_partition_that_the_end_does_not_have_is_not_read():
    assert ranges(Offset({A0: 9, A1: 3}), Offset({A1: 5})) == {A1: Range(3, 5)}


# ---- topics that were made anew


def test_another_id_is_an_error_that_names_both():
    with pytest.raises(TopicRecreatedError) as failure:
        check_ids(INITIAL, {"a": OTHER})
    assert failure.value.topic == "a"
    assert ID_A in str(failure.value)
    assert OTHER in str(failure.value)


def test_an_id_that_nobody_tells_is_trusted():
    check_ids(INITIAL, {"b": OTHER})
    check_ids(Offset({A0: 1}), {"a": OTHER})


def test_a_topic_made_anew_is_noticed_when_a_batch_is_ended():
    with pytest.raises(TopicRecreatedError):
        advance(INITIAL, {A0: 9}, {}, ids={"a": OTHER})


def test_a_topic_made_anew_is_noticed_between_two_texts():
    with pytest.raises(TopicRecreatedError):
        ranges(Offset({A0: 1}, ids={"a": ID_A}, lineage=LINEAGE), Offset({A0: 2}, ids={"a": OTHER}, lineage=LINEAGE))


# ---- checkpoints of the Kafka connector

CONNECTORS = '{"b":{"0":7},"a":{"0":5,"1":0}}'


def test_an_offset_of_the_connector_is_taken_as_it_is():
    adopted = parsed(CONNECTORS)
    assert adopted.is_adopted
    assert adopted.at == {A0: 5, A1: 0, B0: 7}
    assert adopted.to_json() == json.loads(CONNECTORS)


def test_a_topic_called_lowwater_does_not_confuse_it():
    assert parsed('{"lowwater": {"0": 3}}').at == {TopicPartition("lowwater", 0): 3}


def test_an_unfinished_batch_of_the_connector_is_read_between_its_two_offsets():
    assert ranges(parsed('{"a":{"0":5}}'), parsed('{"a":{"0":8}}')) == {A0: Range(5, 8)}


def test_the_first_offset_of_ours_behind_the_connectors_has_ids_and_a_lineage():
    adopted = parsed('{"a":{"0":5}}')
    end = advance(adopted, {A0: 9}, {}, ids={"a": ID_A}, lineage=LINEAGE)
    assert (end.lineage, end.ids, end.begin) == (LINEAGE, {"a": ID_A}, {})
    assert ranges(adopted, end) == {A0: Range(5, 9)}


def test_a_query_keeps_its_lineage_whoever_plans_its_next_batch():
    first = advance(INITIAL, {A0: 9, A1: 3}, {}, ids={"a": ID_A}, lineage=LINEAGE)
    after_a_restart = advance(first, {A0: 12, A1: 3}, {}, ids={"a": ID_A}, lineage="0badcafe")
    assert after_a_restart.lineage == LINEAGE


def test_while_nothing_is_new_the_connectors_offset_stays():
    adopted = parsed(CONNECTORS)
    assert advance(adopted, adopted.at, {}, ids={"a": ID_A}, lineage=LINEAGE) is adopted


def test_a_first_batch_that_the_connector_never_finished_is_refused_with_the_way_out():
    with pytest.raises(UnfinishedAdoptionError, match=r'let format\("kafka"\) finish it first'):
        ranges(INITIAL, parsed('{"a":{"0":8}}'))


# ---- how a batch was planned by time


PLANS = {
    "cut": Plan(cut_ms=1_763_251_200_000),
    "rest": Plan(after_ms=0, cut_ms=600_000, rest=Place("a", 1, 5000)),
    "ordered": Plan(slices=(Bound(-5), Bound(0), Bound(7)), out_of_order_ms=0),
    "ordered within a moment": Plan(slices=(Bound(7), Bound(7, "a", 1, 5), Bound(8)), out_of_order_ms=9),
    "others": Plan(cut_ms=600_000, others={B0: 7, A1: 0}),
    "everything": Plan(
        1, 2, Place("b", 0, 0), (Bound(1), Bound(2)), 60_000, asked=3, ahead=1, due_ms=-1, others={A1: 3}
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_plan_is_in_the_text_and_comes_back_from_it(plan):
    end = advance(INITIAL, {A0: 9, A1: 0}, {}, ids={"a": ID_A}, plan=plan)
    assert parsed(text(end)) == end
    assert text(parsed(text(end))) == text(end)
    assert end.plan == plan


def test_the_text_of_a_plan_is_as_the_format_says():
    end = advance(INITIAL, {A0: 9, A1: 0}, {}, ids={}, plan=PLANS["everything"])
    assert text(end).endswith(
        '"plan": {"after": 1, "cut": 2, "rest": ["b", 0, 0], "due": -1, "others": {"a": {"1": 3}}, "slices": [1, 2], '
        '"disorder": 60000, "asked": 3, "ahead": 1}}'
    )


def test_a_plan_that_says_nothing_is_left_out():
    assert "plan" not in text(advance(INITIAL, {A0: 9, A1: 0}, {}, ids={}, plan=Plan()))


def test_a_plan_alone_is_another_offset_only_where_that_is_wanted():
    plan = PLANS["cut"]
    assert advance(INITIAL, {A0: 5, A1: 0}, {}, ids={}, plan=plan) is INITIAL
    end = advance(INITIAL, {A0: 5, A1: 0}, {}, ids={}, plan=plan, also_empty=True)
    assert (end.plan, end.is_initial, end.begin) == (plan, False, {A0: 5, A1: 0})
    assert ranges(INITIAL, end) == {A0: Range(5, 5), A1: Range(0, 0)}


def test_a_plan_with_something_unknown_is_refused():
    with pytest.raises(NewerOffsetError, match="the plan of the offset has deep"):
        Offset.parse({"lowwater": 1, "lineage": LINEAGE, "plan": {"cut": 1, "deep": []}})


@pytest.mark.parametrize(
    "plan",
    [
        7,
        {"cut": "noon"},
        {"cut": True},
        {"cut": 1 << 63},
        {"rest": ["a", 0, 1]},
        {"after": 1},
        {"cut": 1, "rest": ["a", 0]},
        {"cut": 1, "rest": ["a", -1, 0]},
        {"cut": 1, "rest": ["a", 0, -1]},
        {"cut": 1, "rest": "a-0"},
        {"slices": [2, 1]},
        {"slices": [1, 1]},
        {"slices": ["1"]},
        {"slices": 1},
        {"slices": [[]]},
        {"slices": [[1, "a", 0]]},
        {"slices": [[1, "a", 0, 7], [1, "a", 0, 7]]},
        {"disorder": -1},
        {"cut": 1, "asked": -1},
        {"cut": 1, "ahead": 1.5},
    ],
)
def test_a_plan_that_nobody_wrote_is_refused(plan):
    with pytest.raises(OffsetError):
        Offset.parse({"lowwater": 1, "lineage": LINEAGE, "plan": plan})


def test_an_initial_offset_has_no_plan():
    with pytest.raises(OffsetError, match="initial offset has a plan"):
        Offset.parse({"lowwater": 1, "lineage": LINEAGE, "initial": True, "plan": {"cut": 1}})
