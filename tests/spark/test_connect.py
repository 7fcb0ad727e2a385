"""The source, the sink and pipelines through a Spark Connect server, whose client has no JVM."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.under_test import UnderTest
from tests.conftest import require_peer
from tests.crash.spark_job import CONFS
from tests.fresh import fresh
from tests.spark.clusters import connect_server, result_of
from tests.spark.writing import Topics

ROWS = 10


def test_batches_streams_progress_and_pipelines_over_connect(broker: UnderTest, topics: Topics, tmp_path: Path) -> None:
    require_peer("java")
    topic, copy, shouted = topics.create(2), topics.create(2), topics.create(1)
    group, streaming = fresh("connect"), fresh("connect")
    topics.fill(topic, 2, ROWS)
    names = {"topic": topic, "copy": copy, "shouted": shouted, "group": group, "streaming": streaming}
    with connect_server(tmp_path, CONFS) as remote:
        given = {"remote": remote, "bootstrap": broker.bootstrap, "limit": ROWS, "batches": 2, **names}
        found = result_of("tests.spark.connect_job", tmp_path, **given)

    values = [f"{partition}-{row}" for partition in range(2) for row in range(ROWS)]
    assert found["is_remote"]
    assert found["values"] == sorted(values)
    assert found["pipeline"] == {"outcome": "done", "rows": 2 * ROWS}
    assert sorted(row.value or b"" for row in topics.read(shouted)) == sorted(each.upper().encode() for each in values)
    assert topics.committed(group, topic, 2) == {0: ROWS, 1: ROWS}

    assert found["progress"] == [[0, ROWS, ROWS], [1, ROWS, 0]]
    assert sorted(row.value or b"" for row in topics.read(copy)) == sorted(each.encode() for each in values)
    assert topics.committed(streaming, topic, 2) == {0: ROWS, 1: ROWS}
