"""One Spark session for all tests of the run, and topics that a client other than ours has written."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from peers import places
from pyspark.sql import SparkSession
from tests.conformance.under_test import UnderTest, running
from tests.conftest import require_peer
from tests.spark.guarded import Guarded, guarded
from tests.spark.pipeline_world import MODULE, World
from tests.spark.reading import Spark
from tests.spark.writing import Topics

from lowwater.spark.java import use_java
from lowwater.spark.launchers import worker_python

SPARK_TESTS = Path(__file__).parent
TIMEOUT_S = 600
KAFKA_BROKERS = 3
"""A session takes a minute to start on a busy machine."""
_QUICK_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
CONFS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.checkpointFileManagerClass": _QUICK_FILES,
    "spark.python.unix.domain.socket.enabled": "true",
}

EVENT_LOG = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(SPARK_TESTS):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def broker(against: str) -> Iterator[UnderTest]:
    """Ours; or Apache Kafka, then as a cluster, so that leaders are spread."""
    with running(against, kafka_brokers=KAFKA_BROKERS) as under_test:
        yield under_test


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    require_peer("java")
    use_java()
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(worker_python())
    # What Spark shows of a query, in its pages and its event log, is searched for secrets.
    folders = {
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.eventLog.dir": tmp_path_factory.mktemp("events").as_uri(),
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in (CONFS | EVENT_LOG | folders | connector_jars()).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def connector_jars() -> dict[str, str]:
    """Spark's own Kafka connector beside ours, where it was brought: a session takes jars only when it starts."""
    if places.missing_connector():
        return {}
    return {"spark.jars": ",".join(map(str, sorted(places.SPARK_LIBS.glob("*.jar"))))}


@pytest.fixture
def spark(session: SparkSession, broker: UnderTest, tmp_path: Path) -> Iterator[Spark]:
    """The session, for one test: queries that it leaves running are stopped."""
    spark = Spark(session, broker.bootstrap, tmp_path)
    yield spark
    spark.stop_queries()


@pytest.fixture(scope="session")
def topics(broker: UnderTest) -> Iterator[Topics]:
    topics = Topics(broker.bootstrap)
    yield topics
    topics.close()


@pytest.fixture
def world(spark: Spark, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield World(spark, topics, tmp_path)
    sys.modules.pop(MODULE, None)


@pytest.fixture(scope="session")
def tls_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Ours, behind mutual TLS."""
    with guarded(tmp_path_factory.mktemp("certificates")) as made:
        yield made
