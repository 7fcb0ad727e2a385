"""The source and the sink over TLS and with logins, told as Java's clients are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PythonException
from tests.integration.client.certificates import make
from tests.integration.client.secured_kafka import PASSWORD, jaas, secured_kafka
from tests.spark.guarded import Guarded
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Topics

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")


def copy(spark: Spark, options: dict[str, str], source: str, target: str) -> None:
    """By a stream that ends: the driver's side and the workers' connect both."""
    frame = spark.session.readStream.format("lowwater").options(**options)
    frame = frame.option("subscribe", source).option("startingOffsets", "earliest").load()
    writer = frame.writeStream.format("lowwater").options(**options).option("topic", target)
    query = writer.option("checkpointLocation", spark.checkpoint()).trigger(availableNow=True).start()
    assert query.awaitTermination(PATIENCE_S), "the query ends"


def test_rows_are_written_and_read_over_mutual_tls(spark: Spark, tls_broker: Guarded) -> None:
    topic, options = tls_broker.topics.create(1), tls_broker.by_file
    frame = spark.session.sql("SELECT 'over TLS' AS value")
    frame.write.format("lowwater").options(**options, topic=topic).mode("append").save()
    assert [row.value for row in tls_broker.topics.read(topic)] == [b"over TLS"]
    found = spark.session.read.format("lowwater").options(**options, subscribe=topic).load().collect()
    assert [bytes(row.value) for row in found] == [b"over TLS"]


def test_a_broker_that_is_not_trusted_gets_no_rows(spark: Spark, tls_broker: Guarded) -> None:
    target = tls_broker.topics.create(1)
    other = str(Path(tls_broker.certificates.authority).with_name("other-ca.pem"))
    options = {**tls_broker.by_file, "kafka.ssl.truststore.location": other, "topic": target}
    frame = spark.session.sql("SELECT 'a' AS value")
    with pytest.raises(PythonException, match=r"certificate of localhost:\d+ is not accepted"):
        frame.write.format("lowwater").options(**options).mode("append").save()
    assert tls_broker.topics.read(target) == []


@pytest.mark.peer("kafka")
def test_streams_log_in_by_a_jaas_text(spark: Spark, tmp_path: Path) -> None:
    modules = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-512": "scram.ScramLoginModule"}
    certificates = make(tmp_path)
    with secured_kafka(certificates) as kafka:
        topics = Topics(kafka.bootstrap)
        source = topics.create(2)
        topics.fill(source, 2, 3)
        for mechanism, module in modules.items():
            target = topics.create(2)
            options = {
                "kafka.bootstrap.servers": f"127.0.0.1:{kafka.ports['LOGIN']}",
                "kafka.security.protocol": "SASL_SSL",
                "kafka.ssl.truststore.type": "PEM",
                "kafka.ssl.truststore.location": certificates.authority,
                "kafka.sasl.mechanism": mechanism,
                "kafka.sasl.jaas.config": jaas(module, username="ann", password=PASSWORD),
            }
            copy(spark, options, source, target)
            assert len(topics.read(target)) == 6
            options["kafka.sasl.jaas.config"] = jaas(module, username="ann", password="another")
            with pytest.raises((AnalysisException, PythonException), match="refuses the login") as refused:
                spark.session.read.format("lowwater").options(**options, subscribe=source).load().collect()
            assert "another" not in str(refused.value)
        topics.close()
