"""Readers that nobody closes: the group is left at once, what was returned last comes again, and that is said."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.test_reader import TopicOf

import lowwater

PATIENCE_S = 180
AS_TABLES = """
import sys
import lowwater

topic, bootstrap = sys.argv[1:]
for _ in range(2):
    table = lowwater.read(topic, bootstrap=bootstrap, group=topic, stop="latest").to_table()
    print(table.num_rows, flush=True)
"""
AS_GLOBALS = """
import sys
import lowwater

topic, bootstrap = sys.argv[1:]
reader = lowwater.read(topic, bootstrap=bootstrap, group=topic, stop="latest")
for batch in reader:
    print(batch.num_rows, flush=True)
"""
UNCOMMITTED = "was not closed: what it returned last is not committed and comes again"


def run(script: str, topic: str, broker: UnderTest) -> tuple[list[str], str]:
    line = [sys.executable, "-c", script, topic, broker.bootstrap]
    done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def members(broker: UnderTest, group: str) -> int:
    with lowwater.Admin(broker.bootstrap) as admin:
        return len(admin.describe_groups([group])[group].members)


def test_a_table_whose_reader_is_dropped_comes_again_and_the_group_is_left(
    broker: UnderTest, topic_of: TopicOf
) -> None:
    topic = topic_of([100, 200], [150])
    rows, said = run(AS_TABLES, topic, broker)
    assert rows == ["3", "3"]
    assert said.count(UNCOMMITTED) == 2
    assert members(broker, topic) == 0


def test_a_reader_that_lives_until_the_program_ends_leaves_its_group_then(broker: UnderTest, topic_of: TopicOf) -> None:
    topic = topic_of([100, 200], [150])
    rows, said = run(AS_GLOBALS, topic, broker)
    assert sum(map(int, rows)) == 3
    assert said == ""
    assert members(broker, topic) == 0
    rows, _ = run(AS_GLOBALS, topic, broker)
    assert rows == [], "it was committed at the stop"


def test_whoever_commits_by_himself_is_not_warned(
    broker: UnderTest, topic_of: TopicOf, caplog: pytest.LogCaptureFixture
) -> None:
    topic = topic_of([100])
    by_hand = {"enable.auto.commit": False}
    lowwater.read(topic, bootstrap=broker.bootstrap, group=topic, stop="latest", config=by_hand).to_table()
    assert not caplog.records
    assert members(broker, topic) == 0
