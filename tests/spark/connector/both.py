"""The same query twice: by Spark's own Kafka connector, and by ours."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tests.spark.checking import written
from tests.spark.reading import PATIENCE_S, Spark
from tests.spark.writing import Written

KAFKA, LOWWATER = "kafka", "lowwater"
FORMATS = (KAFKA, LOWWATER)


class Both:
    def __init__(self, spark: Spark) -> None:
        self._spark = spark

    @property
    def session(self) -> SparkSession:
        return self._spark.session

    def read(self, form: str, options: dict[str, Any]) -> DataFrame:
        return self.session.read.format(form).options(**self._given(options)).load()

    def stream(self, form: str, options: dict[str, Any]) -> DataFrame:
        return self.session.readStream.format(form).options(**self._given(options)).load()

    def _given(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self._spark.bootstrap, **options}

    def rows(self, form: str, options: dict[str, Any]) -> list[tuple[Written, int]]:
        return rows(self.read(form, options))

    def drained(self, form: str, options: dict[str, Any], checkpoint: str | None = None) -> list[Any]:
        """The rows of each micro-batch, by a query that ends when it has read what is there now."""
        batches: list[Any] = []
        frame = self.stream(form, options)
        at = checkpoint or self._spark.checkpoint()
        query = self._spark.start(frame, lambda batch, _: batches.append(rows(batch)), at, availableNow=True)
        assert query.awaitTermination(PATIENCE_S), "the query ends"
        return batches

    def failure(self, form: str, options: dict[str, Any], *, is_stream: bool = False) -> str:
        """What is said of options that are wrong, or of what went wrong with them."""
        try:
            if is_stream:
                self.drained(form, options)
            else:
                self.read(form, options).collect()
        except Exception as error:
            return str(error)
        raise AssertionError(f"{form} takes {options}")

    def write(self, form: str, frame: DataFrame, **options: Any) -> None:
        frame.write.format(form).options(**self._given(options)).mode("append").save()

    def refusal(self, form: str, frame: DataFrame) -> str:
        """What is said of rows that cannot be written."""
        try:
            self.write(form, frame)
        except Exception as error:
            return str(error)
        raise AssertionError(f"{form} writes {frame}")


def rows(frame: DataFrame) -> list[tuple[Written, int]]:
    """Every column of every row, the kind of its timestamp last."""
    found = [(written(row), row["timestampType"]) for row in frame.toArrow().to_pylist()]
    return sorted(found, key=lambda row: row[0][:3])
