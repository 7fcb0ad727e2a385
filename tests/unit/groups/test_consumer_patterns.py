"""Subscriptions by regular expression."""

from __future__ import annotations

import pytest
from tests.unit.groups.consumer_world import FakeTopics, World

from lowwater.errors import ApiError, ErrorCode
from lowwater.groups import consumer_patterns
from lowwater.groups.consumer_patterns import TopicPatterns


def test_the_whole_name_has_to_match():
    patterns = TopicPatterns(FakeTopics(orders=1, orders_eu=1, my_orders=1))
    assert patterns.topics_of("orders") == {"orders"}
    assert patterns.topics_of("orders.*") == {"orders", "orders_eu"}


def test_internal_topics_match_too_as_in_kafka():
    patterns = TopicPatterns(FakeTopics(t=1, __consumer_offsets=1))
    assert patterns.topics_of(".*") == {"t", "__consumer_offsets"}


def test_topics_that_come_and_go_are_followed():
    topics = FakeTopics(a1=1, b1=1)
    patterns = TopicPatterns(topics)
    assert patterns.topics_of("a.*") == {"a1"}
    topics.create("a2", 1)
    assert patterns.topics_of("a.*") == {"a1", "a2"}
    topics.delete("a1")
    assert patterns.topics_of("a.*") == {"a2"}


@pytest.mark.parametrize("pattern", ["[a", "(", "*", "(?=a)", "(?<!a)b", r"(a)\1", "a{1,99999}"])
def test_what_re2_does_not_take_is_refused(pattern):
    with pytest.raises(ApiError) as refusal:
        TopicPatterns(FakeTopics(a=1)).topics_of(pattern)
    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION


def test_no_expression_takes_long():
    topics = FakeTopics(**{"a" * 200 + "b": 1})
    assert TopicPatterns(topics).topics_of("(a|a|aa)*(a+)+$") == frozenset()


def test_only_so_many_expressions_are_kept(monkeypatch):
    monkeypatch.setattr(consumer_patterns, "PATTERNS_MAX", 3)
    patterns = TopicPatterns(FakeTopics(a1=1))
    for number in range(10):
        patterns.topics_of(f"a{number}")
    assert patterns.topics_of("a1") == {"a1"}
    assert len(patterns._matches) == len(patterns._compiled) == 3


def test_a_member_gets_the_topics_that_match():
    world = World({"a1": 1, "a2": 2, "b": 1})
    assert world.assignment(world.join("m1", pattern="a.*")) == {"a1": [0], "a2": [0, 1]}


def test_names_and_expression_add_up():
    world = World({"a1": 1, "b": 1, "c": 1})
    assert world.assignment(world.join("m1", pattern="a.*", topics=["b"])) == {"a1": [0], "b": [0]}


def test_a_topic_that_begins_to_match_is_noticed_at_the_next_heartbeat():
    world = World({"a1": 1})
    world.join("m1", pattern="a.*")
    world.topics.create("a2", 1)
    told = world.beat("m1", 2)
    assert (told.member_epoch, world.assignment(told)) == (3, {"a1": [0], "a2": [0]})


def test_a_topic_that_no_longer_matches_is_taken_away():
    world = World({"a1": 1, "b1": 1})
    world.join("m1", pattern=".1")
    told = world.beat("m1", 2, pattern="b.*")
    assert world.assignment(told) == {"b1": [0]}
    assert world.beat("m1", 2, owned={"b1": [0]}).member_epoch == 3


def test_an_empty_expression_takes_the_expression_back():
    world = World({"a1": 1, "b": 1})
    world.join("m1", pattern="a.*", topics=["b"])
    assert world.assignment(world.beat("m1", 2, pattern="")) == {"b": [0]}
    assert world.members()["m1"].subscribed_topic_regex == ""


def test_a_refused_expression_leaves_the_old_one():
    world = World({"a1": 1})
    world.join("m1", pattern="a.*")
    assert world.refused("m1", 2, pattern="[") is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert world.members()["m1"].subscribed_topic_regex == "a.*"


def test_an_expression_that_nobody_has_any_more_goes_from_the_log():
    world = World({"a1": 1, "b1": 1})
    world.join("m1", pattern="a.*")
    world.join("m2", pattern="a.*")
    world.beat("m1", 2, pattern="b.*")
    assert set(world.group._durable.resolved) == {"a.*", "b.*"}
    world.beat("m2", -1)
    assert set(world.group._durable.resolved) == {"b.*"}
    world.reload()
    assert set(world.group._durable.resolved) == {"b.*"}


def test_what_matched_before_a_restart_is_compared_after_it():
    world = World({"a1": 1})
    world.join("m1", pattern="a.*")
    world.reload()
    assert world.beat("m1", 2).assignment is None
    world.reload()
    world.topics.create("a2", 1)
    assert world.assignment(world.beat("m1", 2)) == {"a1": [0], "a2": [0]}
