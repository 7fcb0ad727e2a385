"""`python -m examples.declarative`: the project of this folder, on a broker with a day of the sample in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pyspark

from examples.orders import sample
from examples.orders.expected import decoded
from examples.orders.loading import create_topics, load
from lowwater.spark.java import java_home
from lowwater.spark.launchers import worker_python
from lowwater.testing import Broker

PROJECT = Path(__file__).parent
ORDERS = 60


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lowwater-declarative-") as folder, Broker(subprocess=True) as broker:
        messages = sample.messages_of(range(1), ORDERS)
        create_topics(broker.bootstrap)
        load(broker.bootstrap, messages)
        project = copy_project(Path(folder), broker.bootstrap)
        code = run(project)
        if code != 0:
            return code
        found = read_view(project)
    expected = sold(messages)
    print(
        "\n".join(f"{country}: {count:,} orders, {cents / 100:,.2f} euro" for country, (count, cents) in found.items())
    )
    if found != expected:
        print(f"expected were {expected}")
        return 4
    return 0


def copy_project(folder: Path, bootstrap: str) -> Path:
    """With its own storage, and where the broker is."""
    project = folder / "project"
    shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("__*"))
    spec = project / "spark-pipeline.yml"
    text = spec.read_text().replace("file:///tmp/orders-pipeline", (folder / "storage").as_uri())
    spec.write_text(text.replace("localhost:9092", bootstrap))
    return project


def run(project: Path) -> int:
    home = Path(pyspark.__file__).parent
    variables = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_TESTING": "1",  # any port that is free, in place of 15002
        "JAVA_HOME": java_home(),
        "PYSPARK_PYTHON": str(worker_python()),
        "PYSPARK_DRIVER_PYTHON": str(worker_python()),
    }
    command = [str(home / "bin" / "spark-pipelines"), "run", "--spec", "spark-pipeline.yml"]
    return subprocess.run(command, cwd=project, env=variables).returncode


def read_view(project: Path) -> dict[str, tuple[int, int]]:
    files = sorted((project / "spark-warehouse" / "by_country").glob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return {
        row["country"]: (row["orders"], row["amount_cents"]) for row in sorted(rows, key=lambda row: row["country"])
    }


def sold(messages: list[sample.Message]) -> dict[str, tuple[int, int]]:
    counts: Counter[str] = Counter()
    cents: Counter[str] = Counter()
    for message in messages:
        order = decoded("orders", message.value) if message.topic == "orders" and message.value else None
        if order is not None:
            counts[order["country"]] += 1
            cents[order["country"]] += order["amount_cents"]
    return {country: (counts[country], cents[country]) for country in sorted(counts)}


if __name__ == "__main__":
    sys.exit(main())
