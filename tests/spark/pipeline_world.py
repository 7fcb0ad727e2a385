"""Topics and a folder of one test's pipeline, and how it is run: in the session of all tests, or by its command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, TopicPartition
from tests.fresh import fresh
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Topics

from lowwater.cli.main import lowwater
from lowwater.spark import Pipeline
from lowwater.spark.pipeline.summary import Summary

MODULE = "pipeline_steps_of_this_test"
STEPS = """\
def with_tax(paid, *, percent):
    return paid.selectExpr("*", f"amount * (100 + {percent}) / 100 AS total")
"""
FILE = """\
name = "{name}"
checkpoint = "run/checkpoint"

[kafka]
bootstrap.servers = "{bootstrap}"

[source.orders]
topics = "{orders}"
decode = {{ format = "json", schema = "order_id long, amount double, timestamp string" }}
on_bad_row = {{ dead_letter = "{dead}" }}

[source.payments]
topics = "{payments}"
columns = ["key", "value", "timestamp"]

[[step]]
name = "paid"
sql = \"\"\"
SELECT o.order_id, o.amount, o.record_timestamp AS at, CAST(p.value AS string) AS method
FROM orders o
JOIN payments p ON CAST(o.order_id AS string) = CAST(p.key AS string)
WHERE NOT o.tombstone
\"\"\"

[[step]]
name = "taxed"
python = "{module}:with_tax"
from = "paid"
arguments = {{ percent = 10 }}

[sink.files]
from = "taxed"
format = "parquet"
path = "run/out"
partition_by = "method"
"""


class World:
    """Orders, payments and dead letters."""

    def __init__(self, spark: Spark, topics: Topics, folder: Path) -> None:
        self.spark = spark
        self.topics = topics
        self.folder = folder
        self.name = fresh("pipeline")
        self.orders, self.payments = topics.create(2, "orders"), topics.create(1, "payments")
        self.dead = topics.create(1, "dead")

    def write_orders(self, *numbers: int, timestamp: int = 1_763_000_000_000) -> None:
        for number in numbers:
            row = {"order_id": number, "amount": number / 4, "timestamp": f"t{number}"}
            self.topics.write(self.orders, [json.dumps(row).encode()], number % 2, timestamp=timestamp + number)

    def pay(self, *numbers: int, method: bytes = b"card") -> None:
        for number in numbers:
            self.topics.write(self.payments, [method], key=str(number).encode())

    def file(self, text: str = FILE) -> Path:
        (self.folder / f"{MODULE}.py").write_text(STEPS)
        file = self.folder / "pipeline.toml"
        names = {"name": self.name, "bootstrap": self.spark.bootstrap, "module": MODULE}
        topics = {"orders": self.orders, "payments": self.payments, "dead": self.dead}
        file.write_text(text.format(**names, **topics))
        return file

    def run(self, text: str = FILE) -> Summary:
        return Pipeline.load(self.file(text)).run(spark=self.spark.session)

    def command(self, command: str, text: str, *words: str) -> Result:
        return CliRunner().invoke(lowwater, ["pipeline", command, str(self.file(text)), *words])

    def files(self) -> list[tuple[Any, ...]]:
        table = pq.read_table(self.folder / "run" / "out").select(["order_id", "amount", "total", "method"])
        return sorted(tuple(row.values()) for row in table.to_pylist())

    def json_rows(self) -> list[dict[str, Any]]:
        """Of a sink that writes JSON."""
        return [json.loads(line) for file in (self.folder / "run" / "out").glob("*.json") for line in file.open()]

    def committed(self, topic: str, partitions: int) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.spark.bootstrap, "group.id": self.name, "log_level": 0})
        try:
            found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], PATIENCE_S)
        finally:
            consumer.close()
        return [each.offset for each in found]
