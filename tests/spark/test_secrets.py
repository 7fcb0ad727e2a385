"""Passwords and keys of a query's options are found nowhere: not in plans, pages, logs, checkpoints or errors."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.spark.guarded import Guarded
from tests.spark.reading import PATIENCE_S, Spark

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")

PAGES = ("jobs/", "stages/", "environment/", "executors/", "SQL/", "StreamingQuery/")
ANSWERS = ("jobs", "stages", "environment", "executors", "sql?details=true&planDescription=true&length=1000")
SECRET = "hush-4711"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def what_spark_shows(spark: Spark) -> Iterator[tuple[str, str]]:
    """Its pages, its HTTP answers, its event log: all of all queries so far."""
    context = spark.session.sparkContext
    for name in PAGES:
        yield name, page(f"{context.uiWebUrl}/{name}")
    api = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"
    for name in ANSWERS:
        yield name, page(f"{api}/{name}")
    for number in [each["id"] for each in json.loads(page(f"{api}/sql?length=1000"))][-8:]:
        yield f"query {number}", page(f"{context.uiWebUrl}/SQL/execution/?id={number}")
    folder = Path(str(spark.session.conf.get("spark.eventLog.dir")).removeprefix("file://"))
    yield "event log", "".join(path.read_text() for path in folder.iterdir())


def what_a_query_shows(query: Any, checkpoint: str) -> Iterator[tuple[str, str]]:
    yield "progress", json.dumps([json.loads(event.json) for event in query.recentProgress])
    yield "plan", str(query._jsq.streamingQuery().lastExecution().toString())
    yield (
        "checkpoint",
        "".join(path.read_text(errors="replace") for path in Path(checkpoint).rglob("*") if path.is_file()),
    )


def test_nothing_that_spark_shows_has_a_secret_in_it(spark: Spark, tls_broker: Guarded) -> None:
    topics, options, checkpoint = tls_broker.topics, tls_broker.as_text, spark.checkpoint()
    source, target = topics.create(1), topics.create(1)
    topics.write(source, [b"one", b"two"])
    frame = spark.session.readStream.format("lowwater").options(**options, subscribe=source)
    writer = frame.option("startingOffsets", "earliest").load().writeStream.format("lowwater").queryName("guarded")
    writer = writer.options(**options, topic=target, checkpointLocation=checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S), "the query ends"
    batch = spark.session.read.format("lowwater").options(**options, subscribe=target).load()
    assert len(batch.collect()) == 2
    batch.write.format("lowwater").options(**options, topic=target).mode("append").save()

    shown = dict([*what_spark_shows(spark), *what_a_query_shows(query, checkpoint)])
    shown["batch plan"] = str(batch._jdf.queryExecution().toString())
    found = [place for place, text in shown.items() for secret in tls_broker.secrets if secret in text]
    assert found == []
    # The search looks at the right places: what is no secret is there.
    assert source in shown["progress"]
    assert source in shown["checkpoint"]
    assert "guarded" in shown["StreamingQuery/"]
    assert "guarded" in shown["event log"]


@pytest.mark.parametrize(
    "options",
    [
        {"kafka.sasl.jaas.config": f'{PLAIN} required username="u" password="{SECRET}"'},
        {"kafka.sasl.jaas.config": f'{PLAIN} required username="u" password="{SECRET}";', "kafka.sasl.mechanism": "X"},
        {"kafka.ssl.keystore.location": "/k.jks", "kafka.ssl.keystore.password": SECRET},
    ],
)
def test_options_that_are_refused_do_not_show_their_secrets(spark: Spark, options: dict[str, str]) -> None:
    common = {"kafka.bootstrap.servers": spark.bootstrap, "subscribe": "t", "kafka.security.protocol": "SASL_SSL"}
    with pytest.raises(PySparkException) as refused:
        spark.session.read.format("lowwater").options(**common, **options).load()
    assert SECRET not in str(refused.value)


def test_a_login_that_fails_does_not_show_its_password(spark: Spark, tls_broker: Guarded) -> None:
    login = {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{PLAIN} required username="u" password="{SECRET}";',
        "kafka.default.api.timeout.ms": "2000",
    }
    frame = spark.session.read.format("lowwater").options(**tls_broker.by_file | login, subscribe="t").load()
    with pytest.raises(PySparkException, match=r"refuses the login|does not know SaslHandshake") as refused:
        frame.collect()
    assert SECRET not in str(refused.value)
    shown = {**dict(what_spark_shows(spark)), "plan": str(frame._jdf.queryExecution().logical().toString())}
    assert [place for place, text in shown.items() if SECRET in text] == []
