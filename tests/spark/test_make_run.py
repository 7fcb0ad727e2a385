"""`make run`, on a small sample: the first run, the next one, and a check that notices what is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples.orders import chart, check
from examples.orders.__main__ import PIPELINE, make_run
from examples.orders.plain import read_plainly
from examples.orders.reading import read_batches, read_logs
from examples.orders.sample import TOPICS
from pyspark.sql import SparkSession

from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.reporting import Reporting, report
from lowwater.testing import Broker

ORDERS_A_DAY = 60
PLAIN_LIMIT = 70
LIMIT = 50  # of each topic; together less than a day has
CUT_MS = 86_400_000
PARTITIONS = 9  # of the three topics together
Run = Callable[[str, Path], int]


@pytest.fixture
def run(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs the pipeline in the session of all tests."""

    def run(bootstrap: str, run_dir: Path) -> int:
        monkeypatch.setenv("BOOTSTRAP", bootstrap)
        monkeypatch.setenv("RUN_DIR", str(run_dir))
        monkeypatch.setenv("LIMIT", str(LIMIT))
        pipeline = Pipeline.load(PIPELINE)
        reporting = Reporting(lambda course: None)
        summary = pipeline.run(spark=session, observer=reporting)
        for query in report(pipeline.model, summary, reporting.courses)["queries"]:
            assert query["error"] is None
            assert query["records_behind"] == {"all": 0, "min": 0, "max": 0, "avg": 0}
        show_status(pipeline)
        return int(summary.exit_code)

    before = session.conf.get("spark.sql.shuffle.partitions")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield run
    session.conf.set("spark.sql.shuffle.partitions", before)


def show_status(pipeline: Pipeline) -> None:
    """Everything is read, and committed."""
    status = pipeline.status()
    assert status.problems == ()
    dead_letters, by_hour = status.queries
    assert not by_hour.checkpoint.is_cut_off
    assert len(by_hour.partitions) == PARTITIONS
    assert all(one.at == one.end == one.committed for one in by_hour.partitions)
    assert dead_letters.behind is not None
    assert dead_letters.behind.records == 0


def check_cuts(checkpoint: Path) -> None:
    """Sources choose the same moments, although one limit makes them other ones than midnights."""
    cuts = []
    for file in (file for file in (checkpoint / "offsets").iterdir() if file.name.isdigit()):
        plans = [json.loads(source)["plan"] for source in file.read_text().splitlines()[2:]]
        assert len(plans) == len(TOPICS)
        cuts.append({plan["cut"] for plan in plans})
    assert all(len(each) == 1 for each in cuts)
    assert any(cut % CUT_MS for each in cuts for cut in each)


def spoil_a_row(run_dir: Path) -> None:
    """One order too many in one hour."""
    file = next((run_dir / "by_hour").glob("day=*/*.parquet"))
    table = pq.ParquetFile(file).read()
    orders = table["orders"].to_pylist()
    spoilt = table.set_column(table.column_names.index("orders"), "orders", pa.array([orders[0] + 1, *orders[1:]]))
    pq.write_table(spoilt, file)


def test_make_run_goes_on_where_it_ended_and_notices_a_wrong_row(
    run: Run, session: SparkSession, tmp_path: Path, capsys
) -> None:
    def split(bootstrap: str, run_dir: Path) -> None:
        read_plainly(session, bootstrap, str(run_dir / chart.PLAIN), limit=PLAIN_LIMIT)

    run_dir = tmp_path / "run"
    assert make_run(run_dir, ORDERS_A_DAY, run, split) == 0
    first = capsys.readouterr().out
    assert "Loaded 3 days" in first
    assert "Spark begins" in first
    assert "Checked: all" in first
    assert re.search(r"5\. Event time, .* apart when split by offsets, .* with cuts; drawn in ", first)
    drawn = (run_dir / "event-time.svg").read_text()
    assert drawn.count('class="line"') >= 2 * PARTITIONS
    batches = len(read_batches(run_dir / "checkpoint" / "by_hour"))

    assert make_run(run_dir, ORDERS_A_DAY, run, split) == 0
    second = capsys.readouterr().out
    assert "Loaded another day" in second
    assert "Spark goes on from the checkpoint" in second
    assert "Checked: all" in second
    assert len(read_batches(run_dir / "checkpoint" / "by_hour")) > batches

    check_cuts(run_dir / "checkpoint" / "by_hour")
    spoil_a_row(run_dir)
    with Broker(subprocess=True, data_dir=run_dir / "broker") as broker:
        logs = read_logs(broker.bootstrap, TOPICS)
        drawn = chart.panel("", read_batches(run_dir / "checkpoint" / "by_hour"), logs)
        assert chart.apart_ms(drawn) <= CUT_MS, "no partition runs ahead of another by more than a cut"
        assert check.main(broker.bootstrap, str(run_dir)) == check.DIFFERS
    assert "differs from what plain Python finds in the topics (1 times)" in capsys.readouterr().out
