"""Every option of the source and of the sink: its name, what it takes, its default, where it counts, what it does.

Options that the Kafka connector has keep its names, meanings and defaults. docs/spark-options.md is printed from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

from lowwater.errors import ConfigError
from lowwater.spark.exactly_once.ids import sink_id_problem
from lowwater.types import topic_name_problem

INT_MAX = (1 << 31) - 1
LONG_MAX = (1 << 63) - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,15})\s*(us|ms|s|m|min|h|d|w)?", re.ASCII)
_UNIT_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 604_800_000_000,
}


class OptionError(ConfigError, ValueError):
    """An option that cannot be taken: which, why, and what could stand there. One line, as Spark shows the last."""


class Where(Flag):
    BATCH = auto()
    STREAM = auto()
    SINK = auto()
    SOURCE = BATCH | STREAM
    ALL = BATCH | STREAM | SINK


@dataclass(frozen=True, slots=True)
class Takes:
    """What an option takes, in words, and how it is read; ValueError says what is wrong with a text."""

    words: str
    read: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Option:
    """`ours`: the Kafka connector has none of that name."""

    name: str
    takes: Takes
    default: str | None
    where: Where
    help: str
    ours: bool = False
    aliases: tuple[str, ...] = ()
    is_secret: bool = False

    @property
    def key(self) -> str:
        """As it arrives: Spark turns the names of options into lower case."""
        return self.name.lower()

    def read(self, text: str) -> Any:
        try:
            return self.takes.read(text.strip())
        except ValueError as error:
            shown = "is not understood" if self.is_secret else error
            raise OptionError(f"{self.name} {shown}; it takes {self.takes.words}") from None


# -- what options take


def _not_understood(text: str) -> ValueError:
    return ValueError(f'is not understood. For input string: "{text}"')


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _not_understood(text)
    return text.lower() == "true"


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or not -LONG_MAX <= int(text) <= LONG_MAX:
        raise _not_understood(text)
    return int(text)


def _from_one(most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = _number(text)
        if number <= 0:
            raise ValueError(f"must be positive, not {number}")
        if number > most:
            raise _not_understood(text)
        return number

    return read


def _from_zero(text: str) -> int:
    number = _number(text)
    if number < 0:
        raise ValueError(f"must not be negative, as {number} is")
    return number


def duration_ms(text: str) -> int:
    """As Spark writes times: 15m, 10 s, 500ms, 2h, 1d; a number alone is in milliseconds. Rounded down."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"cannot be {text!r}, which is no time")
    return int(found[1]) * _UNIT_US[found[2] or "ms"] // 1_000


def _span_ms(text: str) -> int:
    span = duration_ms(text)
    if span <= 0:
        raise ValueError(f"must be positive, not {text}")
    return span


def _one_of(*choices: str) -> Takes:
    def read(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"cannot be {text!r}")
        return text.lower()

    return Takes(", ".join(f"`{one}`" for one in choices), read)


def topic_names(text: str) -> tuple[str, ...]:
    """Names with commas between them; each once."""
    names = tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))
    for name in names:
        if (problem := topic_name_problem(name)) is not None:
            raise ValueError(f"cannot be taken: {problem}")
    return names


def _some_topics(text: str) -> tuple[str, ...]:
    names = topic_names(text)
    if not names:
        raise ValueError("names no topic")
    return names


def _one_topic(text: str) -> str:
    if (problem := topic_name_problem(text)) is not None:
        raise ValueError(f"cannot be taken: {problem}")
    return text


def _sink_id(text: str) -> str:
    if (problem := sink_id_problem(text)) is not None:
        raise ValueError(f"cannot be taken: it {problem}")
    return text


TEXT = Takes("text", str)
BOOLEAN = Takes("`true` or `false`", _boolean)
POSITIVE_INT = Takes("a whole number from 1", _from_one(INT_MAX))
POSITIVE = Takes("a whole number from 1", _from_one(LONG_MAX))
COUNT = Takes("a whole number from 0", _from_zero)
DURATION = Takes("a time such as `15m`, `10s`, `500ms`; a number alone is in milliseconds", duration_ms)
SPAN = Takes("a time span such as `10m`, `1h`", _span_ms)
TOPICS = Takes("topics, with commas between them", _some_topics)
TOPIC = Takes("a topic", _one_topic)
LEDGER = Takes("a topic, or nothing", lambda text: _one_topic(text) if text else "")
OFFSETS_JSON = Takes('`earliest`, `latest`, or JSON: `{"orders": {"0": 23, "1": -1}}`, -2 earliest, -1 latest', str)
TIMESTAMP = Takes("milliseconds since 1970", str)
TIMESTAMPS_JSON = Takes('JSON: `{"orders": {"0": 1793491200000}}`, milliseconds since 1970', str)
POSITIONS = Takes("a [start position](start-positions.md), for all, topic by topic, partition by partition", str)
PASSWORD = Takes("text", str)
SINK_ID = Takes("a name without white space", _sink_id)

BATCH, STREAM, SINK, SOURCE, ALL = Where.BATCH, Where.STREAM, Where.SINK, Where.SOURCE, Where.ALL

# -- the table

KAFKA_OPTIONS = (
    Option("kafka.bootstrap.servers", TEXT, None, ALL,
           "Needed. Some brokers, as `host:port`, with commas between them.", aliases=("bootstrap.servers",)),
    Option("subscribe", TEXT, None, SOURCE,
           "Topics to read, with commas between them. One of `subscribe`, `subscribePattern` and `assign` is needed.",
           aliases=("topics",)),
    Option("subscribePattern", TEXT, None, SOURCE,
           "Read every topic whose whole name matches this regular expression (Python's), also those that come later; "
           "no internal ones, and those that these tools keep (`__lowwater_…`) only where it begins as they do."),
    Option("assign", TEXT, None, SOURCE, 'Partitions to read, as JSON: `{"orders": [0, 1]}`. New ones do not count.'),
    Option("startingOffsets", OFFSETS_JSON, None, SOURCE,
           "Where to start: unless set, batch queries at `earliest`, streams at `latest`. Counts when a query starts "
           "anew: one that is restarted goes on by its checkpoint, and partitions that come later are read from their "
           "beginning. JSON names every partition that is read."),
    Option("startingTimestamp", TIMESTAMP, None, SOURCE,
           "Start at the first record stamped at or after that, in all partitions. Goes before "
           "`startingOffsetsByTimestamp` and `startingOffsets`."),
    Option("startingOffsetsByTimestamp", TIMESTAMPS_JSON, None, SOURCE,
           "The same, partition by partition; names every one. Goes before `startingOffsets`."),
    Option("startingOffsetsByTimestampStrategy", _one_of("error", "latest"), "error", SOURCE,
           "What to do with a partition that has no record as late as a `startingTimestamp` or "
           "`startingOffsetsByTimestamp`: fail, or start at its end."),
    Option("endingOffsets", OFFSETS_JSON, "latest", BATCH,
           "Where to end, exclusive. Not at `earliest`. Refused in streams."),
    Option("endingTimestamp", TIMESTAMP, None, BATCH,
           "End at the first record stamped at or after that, or at the end. Goes before `endingOffsetsByTimestamp` "
           "and `endingOffsets`. Refused in streams."),
    Option("endingOffsetsByTimestamp", TIMESTAMPS_JSON, None, BATCH,
           "The same, partition by partition; names every one. Refused in streams."),
    Option("maxOffsetsPerTrigger", POSITIVE, None, STREAM,
           "At most about so many offsets in a micro-batch, shared by what each partition has left; each gets at "
           "least one. `once` leaves it out. Ignored in batch queries."),
    Option("minOffsetsPerTrigger", POSITIVE, None, STREAM,
           "Wait until so many offsets are there, but no longer than `maxTriggerDelay`. Available-now queries do not "
           "wait. Ignored in batch queries."),
    Option("maxTriggerDelay", DURATION, "15m", STREAM,
           "How long `minOffsetsPerTrigger` may hold records back. Ignored in batch queries."),
    Option("minPartitions", POSITIVE_INT, None, SOURCE,
           "Split large partitions so that there are about so many tasks, where there would be fewer."),
    Option("maxRecordsPerPartition", POSITIVE, None, SOURCE, "At most so many offsets in a task."),
    Option("failOnDataLoss", BOOLEAN, "true", SOURCE,
           "Fail when records are gone that were to be read, and say which; `false`: go on, and keep the ranges in the "
           "loss ledger."),
    Option("includeHeaders", BOOLEAN, "false", SOURCE, "Whether there is a column `headers`."),
    Option("groupIdPrefix", TEXT, None, SOURCE,
           "What the clients of the query call themselves, unless `kafka.client.id` is set: no consumer group is made "
           "up here that could have this prefix."),
    Option("kafka.group.id", TEXT, None, SOURCE,
           "Taken, but nothing is committed to it, as in the connector: say `group` to start from a group and commit "
           "to it."),
    Option("fetchOffset.numRetries", COUNT, "3", SOURCE,
           "Taken for the connector's sake. What may pass is tried again until `kafka.default.api.timeout.ms` is over, "
           "and by a running stream for ever."),
    Option("fetchOffset.retryIntervalMs", POSITIVE_INT, "100", SOURCE,
           "The wait before it is tried again, which doubles each time: `kafka.retry.backoff.ms`."),
    Option("kafkaConsumer.pollTimeoutMs", POSITIVE, "120000", SOURCE,
           "How long a task waits for a broker that sends nothing before it fails."),
    Option("topic", TOPIC, None, SINK,
           "Where rows are written. Without it each row says so, in a column `topic`."),
)  # fmt: skip

OWN_OPTIONS = (
    Option("start", POSITIONS, None, SOURCE,
           "Where to start, as everywhere in Lowwater: `stored|-1h|earliest`, `orders=stored,metrics=-1h`, "
           "`orders[0]=17`. With a `group` and no start at all: `stored`, else where the connector would. Not "
           "together with the connector's options for it.", ours=True),
    Option("stop", POSITIONS, None, BATCH,
           "Where to stop, exclusive, in the same grammar without `stored` and fallbacks; a time stops at the first "
           "record stamped so late. Refused in streams.", ours=True),
    Option("timeZone", TEXT, None, SOURCE,
           "The zone of dates and times in `start` and `stop` that name none: `UTC`, `Europe/Berlin`.", ours=True),
    Option("group", TEXT, None, SOURCE,
           "The group whose committed offsets `stored` means. Streams commit to it what their checkpoint says is "
           "done, so that lag tools see them; batch queries commit nothing.", ours=True),
    Option("commitOffsets", BOOLEAN, "true", STREAM,
           "`false`: start from the `group`, but commit nothing to it. For further queries over the same source.",
           ours=True),
    Option("lossLedger", LEDGER, "__lowwater_losses", SOURCE,
           "The topic in which ranges are kept that a query with `failOnDataLoss=false` went on without; it is made "
           "when it is needed. Empty: they are only logged.", ours=True),
    Option("maxPartitions", POSITIVE_INT, None, SOURCE,
           "At most so many tasks in a batch, unless `minPartitions` or `maxRecordsPerPartition` needs more: one task "
           "then reads several partitions. Worth setting to the number of cores where there are many small "
           "partitions. Unless set: one task for each partition, as the connector has it.", ours=True),
    Option("headInterval", SPAN, "25ms", STREAM,
           "A stream that waits for records asks where its partitions end not more often than this. While none come "
           "the pause doubles, up to eight times as long.", ours=True),
    Option("stopFile", TEXT, None, STREAM,
           "The name of a file beside the driver. Once it is there no new micro-batch begins: the query can be stopped "
           "without cutting one off. Pipelines use it.", ours=True),
)  # fmt: skip

DECODE_OPTIONS = (
    Option("decode", TEXT, None, SOURCE,
           "`json`, `avro` or `protobuf`: the column becomes a struct of the schema's fields.", ours=True),
    Option("decode.column", TEXT, "value", SOURCE, "Which column: `value` or `key`.", ours=True),
    Option("decode.schema", TEXT, None, SOURCE,
           "JSON: columns as in Spark, `id long, at timestamp`; Avro: the schema as JSON; Protobuf: the text of a "
           "`.proto` file.", ours=True),
    Option("decode.schemaFile", TEXT, None, SOURCE,
           "A file with that; for Protobuf a descriptor set is taken too.", ours=True),
    Option("decode.message", TEXT, None, SOURCE, "Protobuf: the full name of the message.", ours=True),
    Option("decode.framing", TEXT, None, SOURCE,
           "`none` or `confluent`: whether a schema's number stands in front of each value. Unless set: `confluent` "
           "when there is a registry.", ours=True),
    Option("decode.registry.url", TEXT, None, SOURCE, "A Schema Registry that knows the schemas.", ours=True),
    Option("decode.registry.user", TEXT, None, SOURCE, "Its login.", ours=True),
    Option("decode.registry.password", PASSWORD, None, SOURCE, "Its password.", ours=True, is_secret=True),
    Option("decode.registry.ca", TEXT, None, SOURCE, "PEM file of the authorities to trust there.", ours=True),
    Option("decode.registry.subject", TEXT, None, SOURCE,
           "The subject whose schema the columns have. Unless set: that of the topic, where one is read.", ours=True),
    Option("decode.registry.version", TEXT, "latest", SOURCE, "Its version, a number or `latest`.", ours=True),
    Option("decode.emitDefaults", TEXT, "false", SOURCE,
           "Protobuf: whether fields that are not there have their default value, or null.", ours=True),
    Option("decode.onBad", TEXT, "fail", SOURCE,
           "What to do with a row that cannot be decoded: `fail`, or `null`; then two more columns have its bytes and "
           "the reason, `value_raw` and `value_error`.", ours=True),
)  # fmt: skip

TIME_OPTIONS = (
    Option("cut", SPAN, None, STREAM,
           "End each micro-batch at [one moment in all partitions](spark-time.md), so that they do not drift apart. "
           "This is the span of event time of a batch, at most. `once` leaves it out.", ours=True),
    Option("idleTimeout", DURATION, "10s", STREAM,
           "How long a partition that has got nothing may hold the cut of the others. With `cut`.", ours=True),
    Option("alignWith", TOPICS, None, STREAM,
           "Further topics by which the moment is chosen: those that other sources of the same query read, so that a "
           "join does not drift apart. With `cut`. All of them need the same `cut` and `maxOffsetsPerTrigger`, and the "
           "same `start` and `group`: a `start` may name the topics of the others (`orders=-7d,payments=-30d`).",
           ours=True),
)  # fmt: skip

ORDER_OPTIONS = (
    Option("order", _one_of("none", "timestamp"), "none", SOURCE,
           "`timestamp`: rows come [in the order of their timestamps](spark-order.md), within each task and from task "
           "to task; with `cut` also from batch to batch. Tasks are slices of time then, not partitions: about as many "
           "as `minPartitions` says, or else one for some ten thousand rows, and at most `maxPartitions`, or 8.",
           ours=True),
    Option("maxOutOfOrder", DURATION, "1m", SOURCE,
           "How far behind the newest row before it in its partition a row may be and still come in order; one that is "
           "further behind is late, and comes so much behind that one. With `order`.", ours=True),
)  # fmt: skip

SINK_OPTIONS = (
    Option("exactlyOnce", BOOLEAN, "false", SINK,
           "Write each row once, for readers of committed records: in [transactions](spark-sink.md#exactly-once). "
           "Needs `sinkId`, and in batch writes `runId`.", ours=True),
    Option("sinkId", SINK_ID, None, SINK,
           "The name of the sink, under which its transactions and what it has committed are known. No other query has "
           "the same, and a query keeps it as it keeps its checkpoint. With `exactlyOnce`.", ours=True),
    Option("runId", TEXT, None, SINK,
           "Batch writes with `exactlyOnce`: the name of this write. A second write of the same name, under the same "
           "`sinkId`, writes nothing. Refused in streams, whose batches have numbers.", ours=True),
    Option("sinkLedger", TOPIC, "__lowwater_sinks", SINK,
           "The topic that keeps what sinks have committed: one partition, compacted. It is made when it is needed. "
           "With `exactlyOnce`.", ours=True),
)  # fmt: skip

OPTIONS = (*KAFKA_OPTIONS, *OWN_OPTIONS, *DECODE_OPTIONS, *TIME_OPTIONS, *ORDER_OPTIONS, *SINK_OPTIONS)
OPTION = {option.key: option for option in OPTIONS}
ALIASES = {alias.lower(): option.key for option in OPTIONS for alias in option.aliases}
# What Spark itself hands over with the rest, and what the connector's own tests set.
SPARKS_OWN = frozenset({"checkpointlocation", "queryname", "_mocksystemtime"})
