"""Every key of a pipeline, once: what it takes, whether it must be there, and what it means.

Unknown keys are found by these tables, and docs/pipeline-keys.md is printed from them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    name: str
    takes: str
    help: str
    default: str = ""
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """`title` is how the table is written in a file."""

    title: str
    help: str
    keys: tuple[Key, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(key.name for key in self.keys if key.is_required)


PIPELINE = Table(
    "the file itself",
    "The keys at the top, and the tables.",
    (
        Key(
            "name", "text", "Names the pipeline, its queries and, unless a source says otherwise, the group.", "", True
        ),
        Key(
            "checkpoint",
            "path",
            "Where Spark keeps how far it got. Each query has a folder of its own in it.",
            "",
            True,
        ),
        Key(
            "trigger",
            "`available-now` or a duration",
            "`available-now` reads what is there and ends; `10s` begins a micro-batch every ten seconds until stopped.",
            "`available-now`",
        ),
        Key(
            "stop_within",
            "duration",
            "How long a stop waits for the running micro-batch. After that it is cut off, and run again next time; "
            "`0s` cuts it off at once.",
            "`2m`",
        ),
        Key(
            "cut",
            "duration",
            "End micro-batches at one moment in all partitions: their span of event time. See "
            "[Batches that end at one moment](spark-time.md).",
        ),
        Key(
            "idle_timeout",
            "duration",
            "With `cut`: how long a partition that has got nothing may hold the cut of the others.",
            "`10s`",
        ),
        Key(
            "align",
            "`true` or `false`",
            "With `cut`: whether the sources of one query are cut at the same moments, so that joins do not drift "
            "apart. Their `limit`s then count together; sources by `pattern` are not waited for.",
            "`true`",
        ),
        Key("master", "text", "Spark's master: `local[4]`, `spark://host:7077`, `yarn`, `k8s://…`.", "`local[*]`"),
        Key("remote", "text", "The address of a Spark Connect server, `sc://host:15002`, in place of `master`."),
        Key("kafka", "table", "Settings of the clients of all sources and topic sinks, by Kafka's names."),
        Key("source", "tables", "What is read: `[source.orders]` is called `orders` in the steps.", "", True),
        Key(
            "step",
            "list of tables",
            "What is made of it, in this order: each `[[step]]` sees the sources and the steps above it.",
        ),
        Key("sink", "tables", "Where it goes: each `[sink.out]` is one streaming query.", "", True),
        Key("spark", "table", "Spark's settings, with or without `spark.` in front."),
    ),
)

SOURCE = Table(
    "[source.NAME]",
    "Exactly one of `topics`, `pattern` and `partitions` says what is read.",
    (
        Key("topics", "text or list", "The topics, as a list or with commas between them."),
        Key("pattern", "text", "All topics whose whole name matches this regular expression, also those made later."),
        Key("partitions", "table", "Only these partitions: `{ orders = [0, 1] }`."),
        Key("start", "start position", "Where to begin when there is no checkpoint yet.", "`stored|earliest`"),
        Key("group", "text", "The group to start from and to commit to.", "the pipeline's `name`"),
        Key("columns", "list", "Only these columns of the source; what is not named is not decoded."),
        Key("decode", "table", "How values become columns."),
        Key("watermark", "table", 'How late rows may come: `{ column = "timestamp", delay = "10m" }`.'),
        Key(
            "on_bad_row",
            "`fail`, `drop` or a table",
            'What becomes of rows that cannot be decoded: `{ dead_letter = "topic" }` keeps them, with the reason.',
            "`fail`",
        ),
        Key(
            "on_data_loss", "`fail` or `skip`", "What to do when records were deleted before they were read.", "`fail`"
        ),
        Key("limit", "number", "At most that many records in a micro-batch."),
        Key("kafka", "table", "Settings of this source's clients, before those of `[kafka]`."),
        Key("options", "table", 'Any other option of `format("lowwater")`, by its name.'),
    ),
)

WATERMARK = Table(
    "watermark",
    "Of a source or a step.",
    (
        Key("column", "text", "The column with the event time.", "", True),
        Key("delay", "duration", "How much older than the latest row one may be.", "", True),
    ),
)

BAD_ROW = Table(
    "on_bad_row",
    "As a table.",
    (
        Key(
            "dead_letter",
            "text",
            "The topic that such rows are written to, with the reason in their headers.",
            "",
            True,
        ),
    ),
)

DECODE = Table(
    "decode",
    "Fields of the decoded values are columns of their own; `tombstone` is true where there was no value.",
    (
        Key("format", "text", "`json`, `avro` or `protobuf`.", "", True),
        Key(
            "schema",
            "text",
            "JSON: the columns, as in `id long, at timestamp`; Avro: the schema; Protobuf: the .proto.",
        ),
        Key("schema_file", "path", "The same from a file; for Protobuf also a descriptor set."),
        Key("message", "text", "Protobuf: the full name of the message."),
        Key(
            "framing",
            "`none` or `confluent`",
            "Whether values begin with the id of a schema.",
            "`confluent` with a registry",
        ),
        Key("registry", "text or table", "The address of a schema registry, or a table with more about it."),
        Key("emit_defaults", "true or false", "Protobuf: fields that are not set have their default.", "`false`"),
    ),
)

REGISTRY = Table(
    "registry",
    "Of `decode`.",
    (
        Key("url", "text", "Where it is: `https://host:8081`.", "", True),
        Key("user", "text", "The login, with `password`."),
        Key("password", "text", "Best as a variable: `${REGISTRY_PASSWORD}`."),
        Key("ca", "path", "A PEM file of certificates to trust."),
        Key("subject", "text", "The subject whose schema rows are decoded to.", "`<topic>-value`"),
        Key("version", "text", "`latest`, or a number.", "`latest`"),
    ),
)

STEP = Table(
    "[[step]]",
    "Either `sql` or `python`.",
    (
        Key("name", "text", "What later steps and sinks call the result.", "", True),
        Key(
            "sql",
            "text",
            "A query in Spark SQL. Tables of a catalog are written with their database: `default.customers`.",
        ),
        Key("python", "text", "`module:function`; the function takes DataFrames and returns one."),
        Key("from", "text or list", "With `python`: what the function is given, in this order."),
        Key("arguments", "table", "With `python`: given to the function by name."),
        Key("watermark", "table", "How late rows of the result may come."),
    ),
)

SINK = Table(
    "[sink.NAME]",
    "One query each, with a checkpoint of its own.",
    (
        Key("from", "text", "The step or source that is written.", "", True),
        Key("format", "text", "`parquet`, `orc`, `json`, `csv`, `delta`, `topic`, `console` or `noop`.", "", True),
        Key("path", "path", "Files and `delta`: where to."),
        Key("topic", "text", "`topic`: where to, unless the rows have a column `topic`."),
        Key("key", "text", "`topic`: the column that becomes the key, when there is no column `key`."),
        Key(
            "encode",
            "`json`",
            "`topic`: makes the value of each row, all columns of it, where there is no column `value`.",
        ),
        Key(
            "exactly_once",
            "`true` or `false`",
            "`topic`: [each row once](spark-sink.md#exactly-once), for readers of committed records.",
            "`false`",
        ),
        Key(
            "sink_id",
            "text",
            "With `exactly_once`: the name under which its commits are known; no other query has it.",
            "`<name>-<NAME>`",
        ),
        Key("mode", "text", "`append`, `update` or `complete`.", "`append`"),
        Key("partition_by", "text or list", "Files and `delta`: a folder for each value of these columns."),
        Key("kafka", "table", "`topic`: settings of the producer, before those of `[kafka]`."),
        Key("options", "table", "Any other option of the format, by its name."),
    ),
)

TABLES = (PIPELINE, SOURCE, DECODE, REGISTRY, WATERMARK, BAD_ROW, STEP, SINK)
