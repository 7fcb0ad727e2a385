"""How a run looks."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys

from lowwater.cli.pipeline_progress import Lines, MetricsFile, cells, tell_summary
from lowwater.spark.course import Course
from lowwater.spark.pipeline.failures import Failure
from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.summary import Outcome, QuerySummary, Summary
from lowwater.spark.progress import Behind, Progress, SourceProgress
from lowwater.types import TopicPartition

ONE = TopicPartition("orders", 0)
MODEL = Pipeline.parse(
    """
    name = "shop"
    checkpoint = "checkpoint"
    kafka.bootstrap.servers = "localhost:9092"
    source.orders.topics = "orders"
    sink.out = { from = "orders", format = "parquet", path = "/out" }
    """,
).model


def course(latest: int = 200_000, late: int = 0) -> Course:
    made = Course("out")
    source = SourceProgress(("orders",), 50_000, {ONE: 50_000}, {ONE: latest}, Behind.of({ONE: 50_000}, {ONE: latest}))
    made.add(Progress("shop.out", 0, 0, 50_000, 0, 10_000, (source,), event_time_max_ms=1772482412694, late_rows=late))
    return made


def test_numbers_can_be_read():
    made = course()
    made.behind_s = 5_400.2
    assert cells(made) == ("out", "50,000", "5,000", "2026-03-02 20:13", "150,000 records (1 h 30 min)", "30 s")


def test_what_is_not_known_is_a_dash():
    assert cells(Course("new")) == ("new", "0", "–", "–", "–", "–")


def test_a_query_that_has_read_everything_has_no_age():
    assert cells(course(latest=50_000))[4:] == ("0 records", "–")


def test_without_a_terminal_every_micro_batch_is_a_line_on_stderr(capsys):
    lines = Lines()
    lines.changed(Course("out"))
    lines.changed(course())
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "out: started\n"
        "out: batch 0: 50,000 rows, 5,000 rows/s, event time 2026-03-02 20:13, 150,000 records behind, 30 s left\n"
    )


def test_a_line_has_nothing_that_is_not_known(capsys):
    made = Course("dead-letters/orders")
    made.add(Progress("", 3, 0, 8, 0, 1000, ()))
    Lines().changed(made)
    assert capsys.readouterr().err == "dead-letters/orders: batch 3: 8 rows, 8 rows/s\n"


def test_a_micro_batch_without_rows_says_so(capsys):
    made = Course("out")
    made.add(Progress("", 3, 0, 8, 0, 1000, ()))
    made.add(Progress("", 4, 0, 0, 0, 1000, ()))
    Lines().changed(made)
    assert capsys.readouterr().err == "out: batch 4: nothing new, 8 rows, 8 rows/s\n"


def test_the_summary_says_what_was_done_and_where_it_lies(capsys):
    summary = Summary("shop", Outcome.DONE, (QuerySummary("out", 1, 50_000, {"orders": 3}),), 12.34)
    tell_summary(MODEL, summary, {"out": course(latest=50_000, late=1)}, verbose=False)
    assert capsys.readouterr().out.splitlines() == [
        "shop: done after 12 s",
        "  out: 50,000 rows in 1 micro-batch, 5,000 rows/s, event time up to 2026-03-02 20:13, "
        "1 row too late for the watermark, all read, 3 rows could not be decoded",
        "    written to /out",
        "    committed to the group shop",
    ]


def test_a_query_that_failed_in_its_first_batch_has_written_and_committed_nothing(capsys):
    summary = Summary("shop", Outcome.FAILED, (QuerySummary("out", failure=Failure("no such row")),), 3)
    tell_summary(MODEL, summary, {}, verbose=False)
    told = capsys.readouterr()
    assert told.out.splitlines() == ["shop: failed after 3 s", "  out: 0 rows in 0 micro-batches"]
    assert told.err == "lowwater: out: no such row\n"


def test_the_file_for_prometheus_is_whole_and_not_written_too_often(tmp_path):
    texts = iter(["one", "two", "three"])
    file = MetricsFile(str(tmp_path / "metrics.prom"), lambda: next(texts))
    file.changed()
    file.changed()
    assert (tmp_path / "metrics.prom").read_text() == "one"
    file.write()
    assert (tmp_path / "metrics.prom").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.prom"]


DRAW = """
from lowwater.cli.pipeline_progress import screen_or_lines
from lowwater.spark.course import Course
from lowwater.spark.progress import Progress
screen = screen_or_lines()
course = Course("out")
screen.changed(course)
course.add(Progress("", 0, 0, 12345, 0, 1000, ()))
screen.changed(course)
screen.close()
"""


def test_in_a_terminal_a_table_is_drawn_anew():
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        child = subprocess.Popen([sys.executable, "-c", DRAW], stderr=theirs, env={**os.environ, "COLUMNS": "100"})
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):  # how a terminal says that nobody is there any more
            while piece := terminal.read(4096):
                drawn += piece
        assert child.wait(60) == 0
    assert b"rows/s" in drawn
    assert b"12,345" in drawn
    assert b"\x1b[" in drawn
