"""What the connector refuses we refuse too, at the same time at the latest, and in its words."""

from __future__ import annotations

import pytest
from tests.spark.connector.both import FORMATS, Both
from tests.spark.prepared import Prepared
from tests.spark.writing import Topics

BATCH = [
    ({"kafka.auto.offset.reset": "earliest"}, "Kafka option 'auto.offset.reset' is not supported"),
    ({"kafka.enable.auto.commit": "true"}, "Kafka option 'enable.auto.commit' is not supported"),
    ({"kafka.key.deserializer": "x"}, "Kafka option 'key.deserializer' is not supported"),
    ({"kafka.value.deserializer": "x"}, "Kafka option 'value.deserializer' is not supported"),
    ({"kafka.interceptor.classes": "x"}, "Kafka option 'interceptor.classes' is not supported"),
    ({"startingOffsets": "latest"}, "starting offset can't be latest for batch queries on Kafka"),
    ({"endingOffsets": "earliest"}, "ending offset can't be earliest for batch queries on Kafka"),
    ({"startingOffsets": '{"TOPIC":{"0":-1,"1":0,"2":4}}'}, "startingOffsets for TOPIC-0 can't be latest for batch"),
    ({"endingOffsets": '{"TOPIC":{"0":-2,"1":0,"2":4}}'}, "ending offset for TOPIC-0 can't be earliest for batch"),
    ({"minPartitions": "0"}, "minPartitions must be positive"),
    ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition must be positive"),
    ({"assign": "{}"}, "Only one of the following options can be specified for Kafka source"),
    ({"subscribePattern": "x.*"}, "Only one of the following options can be specified for Kafka source"),
    ({"startingOffsets": "nonsense"}, "got nonsense"),
    ({"startingOffsets": '{"TOPIC":{"0":5}}'}, "TOPIC-1"),
    ({"startingTimestamp": "9999999999999"}, "No offset matched from request of topic-partition TOPIC-"),
    ({"startingTimestamp": "x"}, "Expected a single long value, got x"),
    ({"endingTimestamp": "x"}, "Expected a single long value, got x"),
    ({"startingOffsets": '{"TOPIC":{"0":99999999,"1":0,"2":4}}'}, "start offset 99999999 is greater than the resolved"),
    ({"subscribe": ""}, "No topics to subscribe to as specified value for option 'subscribe' is ''"),
    ({"failOnDataLoss": "maybe"}, 'For input string: "maybe"'),
    ({"includeHeaders": "perhaps"}, 'For input string: "perhaps"'),
]
STREAM = [
    ({"endingOffsets": "latest"}, "ending offset not valid in streaming queries"),
    ({"endingOffsetsByTimestamp": '{"TOPIC":{"0":1,"1":1,"2":1}}'}, "not valid in streaming queries"),
    ({"startingOffsets": "nonsense"}, "got nonsense"),
    ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "2"}, "maxOffsetsPerTrigger"),
]


SINK = [
    ("SELECT 'k' AS key, 'TOPIC' AS topic", "Required attribute 'value' not found"),
    (
        "SELECT 1 AS value, 'TOPIC' AS topic",
        "value attribute unsupported type int. value must be a(n) string",
    ),
    ("SELECT 1 AS key, 'v' AS value, 'TOPIC' AS topic", "key attribute unsupported type int. key must be a(n) string"),
    ("SELECT 'x' AS headers, 'v' AS value, 'TOPIC' AS topic", "headers attribute unsupported type string"),
    ("SELECT '0' AS partition, 'v' AS value, 'TOPIC' AS topic", "partition attribute unsupported type string"),
    ("SELECT 'v' AS value", "topic option required when no 'topic' attribute is present"),
    ("SELECT 'v' AS value, CAST(NULL AS string) AS topic", "null topic"),
]


def test_wrong_options_of_batch_queries_are_refused_in_the_same_words(both: Both, prepared: Prepared) -> None:
    check(both, BATCH, prepared.mixed, is_stream=False)


def test_wrong_options_of_streams_are_refused_in_the_same_words(both: Both, prepared: Prepared) -> None:
    check(both, STREAM, prepared.mixed, is_stream=True)


def check(both: Both, wrong: list[tuple[dict[str, str], str]], topic: str, *, is_stream: bool) -> None:
    for options, words in wrong:
        given = {"subscribe": topic} | {name: text.replace("TOPIC", topic) for name, text in options.items()}
        for form in FORMATS:
            told = both.failure(form, given, is_stream=is_stream)
            # The connector has one of its names in lower case.
            assert words.replace("TOPIC", topic).lower() in told.lower(), f"{form}: {options}"


@pytest.mark.parametrize(("rows", "words"), SINK)
def test_rows_that_cannot_be_written_are_refused_in_the_same_words(
    both: Both, topics: Topics, rows: str, words: str
) -> None:
    frame = both.session.sql(rows.replace("TOPIC", topics.create()))
    for form in FORMATS:
        assert words in both.refusal(form, frame), form
