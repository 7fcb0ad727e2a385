"""These need Spark's own Kafka connector (`make peers`). With --against=kafka they run on three brokers of Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.conformance.under_test import UnderTest
from tests.spark.connector.both import Both
from tests.spark.prepared import Prepared
from tests.spark.reading import Spark
from tests.spark.writing import Topics

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.peer("connector"))


@pytest.fixture
def both(spark: Spark) -> Both:
    return Both(spark)


@pytest.fixture(scope="package")
def prepared(broker: UnderTest, topics: Topics) -> Prepared:
    return Prepared(broker.bootstrap, topics)
