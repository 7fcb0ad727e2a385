"""docs/spark-options.md is printed from the table of options, and leaves none out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lowwater.spark.kafka_options import SINK_REFUSALS, SOURCE_REFUSALS
from lowwater.spark.option_table import ALIASES, OPTIONS
from lowwater.spark.reference import PARTS, markdown

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "spark-options.md"
# What spec and connector name, so that the table cannot lose one without a test that says so.
PROMISED = """
    kafka.bootstrap.servers subscribe subscribePattern assign startingOffsets endingOffsets startingTimestamp
    startingOffsetsByTimestamp startingOffsetsByTimestampStrategy endingTimestamp endingOffsetsByTimestamp
    maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition failOnDataLoss
    includeHeaders groupIdPrefix kafka.group.id fetchOffset.numRetries fetchOffset.retryIntervalMs
    kafkaConsumer.pollTimeoutMs topic start stop group cut order maxOutOfOrder idleTimeout alignWith decode exactlyOnce
    sinkId
"""


def test_the_page_is_fresh():
    assert PAGE.read_text() == markdown(), "run `make docs`"


def test_every_option_is_on_the_page():
    rows = set(re.findall(r"^\| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE))
    refused = {f"kafka.{name}" for name in (*SOURCE_REFUSALS, *SINK_REFUSALS)}
    assert rows == {option.name for option in OPTIONS} | refused
    assert all(f"`{alias}`" in PAGE.read_text().lower() for alias in ALIASES)


def test_every_option_is_in_one_part_of_the_page():
    listed = [option for _, options, _ in PARTS for option in options]
    assert sorted(option.name for option in listed) == sorted(option.name for option in OPTIONS)


def test_nothing_that_is_promised_is_missing():
    assert set(PROMISED.split()) <= {option.name for option in OPTIONS}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_option_is_explained(option):
    assert option.help.endswith(".")
    assert option.takes.words
    assert not option.is_secret or option.default is None


def test_make_docs_prints_the_page():
    assert "lowwater.spark.reference > docs/spark-options.md" in (ROOT / "Makefile").read_text()
