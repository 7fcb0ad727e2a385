"""The picture of event time."""

from __future__ import annotations

from xml.etree import ElementTree

from examples.backfill.event_time import DAY_MS, Panel, draw
from examples.orders.chart import apart_ms, panel, reached
from examples.orders.expected import Batch, Record

SVG = "{http://www.w3.org/2000/svg}"


def test_a_line_is_drawn_for_each_partition_in_each_panel_and_begins_where_it_is_known() -> None:
    early = Panel("early & <late>", "note", {"a": [DAY_MS, 3 * DAY_MS], "b": [None, DAY_MS]}, [None, 2 * DAY_MS])
    root = ElementTree.fromstring(draw([early, Panel("other", "", {"a": [DAY_MS]})]))
    lines = [one for one in root.iter(f"{SVG}path") if one.get("class") == "line" and "L" in (one.get("d") or "")]
    assert len(lines) == 1  # b has one point, as has the other panel
    assert "early & <late>" in [one.text for one in root.iter(f"{SVG}text")]
    assert "2 micro-batches" in [one.text for one in root.iter(f"{SVG}text")]


def log(*times_ms: int) -> dict[int, Record]:
    return {offset: Record(each, b"") for offset, each in enumerate(times_ms)}


LOGS = {("t", 0): log(10, 30, 20, 90), ("t", 1): log(40, 80, 90)}
BATCHES = [Batch({("t", 0): (0, 0), ("t", 1): (0, 2)}, 0), Batch({("t", 0): (0, 3), ("t", 1): (2, 3)}, 5)]


def test_time_reached_is_that_of_the_newest_record_read() -> None:
    assert reached(("t", 0), BATCHES, LOGS) == [None, 30]
    assert reached(("t", 1), BATCHES, LOGS) == [80, 90]


def test_partitions_are_apart_as_far_as_the_last_is_behind_the_first() -> None:
    assert apart_ms(Panel("", "", {"a": [10, 20, 30], "b": [25, 26, 30]})) == 15
    # Who has read everything is not behind.
    assert apart_ms(Panel("", "", {"a": [10, 10, 10], "b": [15, 20, 30]})) == 0
    assert panel("title", BATCHES, LOGS).watermarks == [None, 5]
