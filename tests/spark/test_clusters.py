"""The source and the sink where tasks run in other processes: a cluster in one line, and one of master and workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.under_test import UnderTest
from tests.conftest import require_peer
from tests.crash.spark_sink_copies import HOSTS, run_speculating
from tests.crash.spark_sink_job import BOTH_RETURN, OVERTAKEN, WAYS
from tests.fresh import fresh
from tests.spark.clusters import result_of, standalone
from tests.spark.writing import Topics

from lowwater.spark import losses

ROWS = 30


@pytest.fixture(scope="module")
def in_one_line() -> str:
    require_peer("java")
    return "local-cluster[2,1,1024]"


@pytest.fixture(scope="module")
def of_two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_peer("java")
    with standalone(tmp_path_factory.mktemp("standalone"), HOSTS) as master:
        yield master


@pytest.mark.parametrize("cluster", ["in_one_line", "of_two_hosts"], ids=["local-cluster", "standalone"])
def test_executors_of_a_cluster_read_and_write(
    cluster: str, request: pytest.FixtureRequest, broker: UnderTest, topics: Topics, tmp_path: Path
) -> None:
    """The format is found without registration there; the group follows; what is gone is named, or skipped."""
    master = request.getfixturevalue(cluster)
    topic, copy, lossy = topics.create(2), topics.create(2), topics.create(1)
    group, ledger = fresh("cluster"), fresh("ledger")
    topics.fill(topic, 2, ROWS)
    topics.fill(lossy, 1, 10)
    topics.delete_before(lossy, 4)
    names = {"topic": topic, "copy": copy, "lossy": lossy, "group": group, "ledger": ledger}
    given = {"master": master, "bootstrap": broker.bootstrap, "limit": ROWS, **names}
    found = result_of("tests.spark.cluster_job", tmp_path, **given)

    values = sorted(f"{partition}-{row}" for partition in range(2) for row in range(ROWS))
    assert sorted(value for _, _, value in found["read"]) == values
    assert len({(parent, partition) for parent, partition, _ in found["read"]}) == 2
    assert len({parent for parent, _, _ in found["read"]}) == 2, "both executors have read"

    assert found["streamed"] == 2
    assert [(row.partition, row.value) for row in topics.read(copy)] == [
        (row.partition, row.value) for row in topics.read(topic)
    ]
    assert topics.committed(group, topic, 2) == {0: ROWS, 1: ROWS}

    assert f"'{lossy}' partition 0: offsets [1, 4) are gone" in found["gone"]
    assert found["kept"] == [[0, offset] for offset in range(4, 10)]
    [loss] = losses(broker.bootstrap, ledger=ledger)
    assert (loss.topic, loss.first, loss.behind) == (lossy, 1, 4)


def test_tasks_that_spark_runs_twice_at_once_write_every_row_once(
    of_two_hosts: str, broker: UnderTest, tmp_path: Path
) -> None:
    """Speculation: the first attempt of a task has written and is slow; Spark starts a second one, and takes either."""
    report = run_speculating(broker.bootstrap, tmp_path, of_two_hosts, len(WAYS))
    print(report)
    assert report.is_clean, str(report)
    assert report.speculated[BOTH_RETURN] == report.speculated[OVERTAKEN] == 1
    assert report.written > report.rows, "both attempts have written"
