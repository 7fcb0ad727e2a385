"""What one writes does not depend on whether the format is `kafka` or `lowwater`."""

from __future__ import annotations

from tests.spark.connector.both import KAFKA, LOWWATER, Both
from tests.spark.writing import Topics, Written

ROWS = """
SELECT CASE WHEN id % 4 = 0 THEN NULL ELSE CAST(id AS string) END AS key,
       CASE WHEN id % 7 = 3 THEN NULL ELSE concat('value ', id) END AS value,
       CASE WHEN id % 4 = 0 THEN int(id % 3) END AS partition,
       CASE WHEN id % 5 = 0 THEN array(struct('h' AS key, CAST('1' AS binary) AS value),
                                       struct('h' AS key, CAST(NULL AS binary) AS value)) END AS headers
FROM range(60)
"""


def content(rows: list[Written]) -> list[object]:
    """Without what a writer cannot decide: offsets and times. Partitions are chosen by the key, or given."""
    return sorted((row.partition, row.key or b"", row.value or b"", str(row)[str(row).index("key=") :]) for row in rows)


def test_the_same_records_are_written_to_the_same_partitions(both: Both, topics: Topics) -> None:
    frame = both.session.sql(ROWS)
    by_connector, by_ours = topics.create(3), topics.create(3)
    both.write(KAFKA, frame, topic=by_connector)
    both.write(LOWWATER, frame, topic=by_ours)
    written = content(topics.read(by_ours))
    assert len(written) == 60
    assert written == content(topics.read(by_connector))


def test_what_one_writes_the_other_reads(both: Both, topics: Topics) -> None:
    topic = topics.create(2)
    both.write(KAFKA, both.session.sql(ROWS).drop("partition"), topic=topic)
    both.write(LOWWATER, both.session.sql(ROWS).drop("partition"), topic=topic)
    options = {"subscribe": topic, "includeHeaders": "true"}
    ours = both.rows(LOWWATER, options)
    assert len(ours) == 120
    assert ours == both.rows(KAFKA, options)
