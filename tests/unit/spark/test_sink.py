"""What a sink writes and what it refuses, before any row is there."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from lowwater.spark.option_table import OptionError
from lowwater.spark.sink import (
    Attempt,
    LowwaterStreamWriter,
    LowwaterWriter,
    Writing,
    Written,
    batch_writer,
    rows_of,
    stream_writer,
)
from lowwater.spark.sink_columns import written_columns
from lowwater.spark.sink_once import LowwaterOnceStreamWriter, LowwaterOnceWriter

OPTIONS = {"kafka.bootstrap.servers": "localhost:9092", "topic": "orders"}
SECRET = "hush-4711"


BINARY, INT, LONG, STRING, TIMESTAMP = BinaryType(), IntegerType(), LongType(), StringType(), TimestampType()
HEADERS = ArrayType(StructType().add("key", STRING, nullable=False).add("value", BINARY))


def schema(**types: DataType) -> StructType:
    made = StructType()
    for name, kind in types.items():
        made.add(name, kind)
    return made


def test_the_columns_of_records_are_written_and_others_are_left_out() -> None:
    columns = written_columns(
        schema(offset=LONG, value=STRING, key=BINARY, timestamp=TIMESTAMP, partition=INT), "orders"
    )
    assert dict(zip(columns.names, columns.places, strict=True)) == {"value": 1, "key": 2, "partition": 4}


def test_the_option_topic_goes_before_the_column() -> None:
    columns = written_columns(schema(value=BINARY, topic=STRING), "orders")
    assert (columns.names, columns.topic) == (("value",), "orders")
    columns = written_columns(schema(value=BINARY, topic=STRING), None)
    assert (columns.names, columns.topic) == (("value", "topic"), None)


def test_headers_are_taken_as_a_source_gives_them() -> None:
    columns = written_columns(schema(value=BINARY, headers=HEADERS), "orders")
    assert columns.names == ("value", "headers")


def test_text_is_text_however_it_is_compared() -> None:
    assert written_columns(schema(value=StringType("UTF8_LCASE")), "orders").names == ("value",)


@pytest.mark.parametrize(
    ("types", "topic", "problem"),
    [
        ({"key": STRING}, "t", "Required attribute 'value' not found"),
        ({"Value": STRING}, "t", "Required attribute 'value' not found"),
        ({"value": STRING}, None, "topic option required when no 'topic' attribute is present"),
        ({"value": INT}, "t", "value attribute unsupported type int. value must be a(n) string or binary"),
        ({"value": STRING, "key": LONG}, "t", "key attribute unsupported type bigint"),
        ({"value": STRING, "topic": BINARY}, None, "topic attribute unsupported type binary"),
        ({"value": STRING, "partition": LONG}, "t", "partition must be a(n) int"),
        (
            {"value": STRING, "headers": MapType(STRING, BINARY)},
            "t",
            "headers must be a(n) array<struct<key:string,value:binary>>",
        ),
    ],
)
def test_columns_that_cannot_be_records_are_refused_in_the_connectors_words(
    types: dict[str, DataType], topic: str | None, problem: str
) -> None:
    with pytest.raises(OptionError) as refused:
        written_columns(schema(**types), topic)
    assert problem in str(refused.value)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(OptionError, match="two columns value"):
        written_columns(schema(value=STRING).add("value", STRING), "t")


def test_batches_do_not_overwrite_topics() -> None:
    with pytest.raises(OptionError, match=r'Save mode Overwrite not allowed for Kafka.*\.mode\("append"\)'):
        batch_writer(OPTIONS, schema(value=STRING), overwrite=True)


def test_a_stream_in_complete_mode_adds_rows() -> None:
    assert isinstance(stream_writer(OPTIONS, schema(value=STRING), overwrite=True), LowwaterStreamWriter)


def test_rows_are_written_once_where_that_is_asked_for() -> None:
    once = {**OPTIONS, "exactlyOnce": "true", "sinkId": "a"}
    assert isinstance(stream_writer(once, schema(value=STRING), overwrite=False), LowwaterOnceStreamWriter)
    assert isinstance(batch_writer({**once, "runId": "b"}, schema(value=STRING), overwrite=False), LowwaterOnceWriter)
    with pytest.raises(OptionError, match="needs runId"):
        batch_writer(once, schema(value=STRING), overwrite=False)
    plain = stream_writer({**OPTIONS, "exactlyOnce": "false"}, schema(value=STRING), overwrite=False)
    assert isinstance(plain, LowwaterStreamWriter)


def test_a_sink_needs_brokers() -> None:
    with pytest.raises(
        OptionError, match=r"'kafka\.bootstrap\.servers' must be specified for configuring Kafka producer"
    ):
        batch_writer({"topic": "t"}, schema(value=STRING), overwrite=False)


def test_writers_travel_to_workers_and_show_no_secrets() -> None:
    login = {
        "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.username": "anna", "kafka.sasl.password": SECRET,
    }  # fmt: skip
    writing = Writing.plan({**OPTIONS, **login}, schema(value=STRING))
    again = pickle.loads(pickle.dumps(LowwaterWriter(writing)))._writing
    assert again == writing
    assert again.options.client.settings["sasl.password"] == SECRET
    assert SECRET not in f"{again!r} {again}"


def test_messages_of_tasks_carry_counts_and_failed_tasks_have_none() -> None:
    messages = [Written(Attempt(3, task, 0), rows=10 + task) for task in range(2)]
    assert pickle.loads(pickle.dumps(messages)) == messages
    assert rows_of([*messages, None]) == 21


def test_a_task_without_rows_connects_to_nobody() -> None:
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    message = stream_writer(nowhere, schema(value=STRING), overwrite=False).write(iter(()))
    assert (message.rows, message.attempt) == (0, Attempt(None, 0, 0))


def test_what_a_failed_write_leaves_is_told(caplog: pytest.LogCaptureFixture) -> None:
    writer = stream_writer(OPTIONS, schema(value=STRING), overwrite=False)
    writer.abort([Written(Attempt(7, 0, 0), rows=5), None], 7)
    assert "batch 7 failed; 5 rows" in caplog.text
    caplog.clear()
    writer.abort([None, None], 8)
    assert not caplog.records


def test_options_without_meaning_are_told_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    options = {**OPTIONS, "kafka.metric.reporters": "a.B"}
    for _ in range(3):
        stream_writer(options, schema(value=STRING), overwrite=False)
    assert caplog.text.count("kafka.metric.reporters has no meaning here") == 1
