"""The settings a topic can have of its own, all that Kafka 4.3 knows.

Where a topic does not set one, the broker settings named as synonyms decide.
"""

from __future__ import annotations

import re

from lowwater.config.setting import (
    LONG_MAX,
    Check,
    Kind,
    Setting,
    Synonym,
    Value,
    at_least,
    between,
    each_of,
    one_of,
)

HOUR_MS = 3_600_000
SEGMENT_BYTES_MIN = 14

STORED_ONLY = "Accepted and stored; it changes nothing here: "
ONE_NODE = STORED_ONLY + "there is one replica of every partition."
NO_TIERS = STORED_ONLY + "there is no tiered storage."

_THROTTLED = re.compile(r"\d+:\d+")


def _throttled_replicas(value: Value) -> bool:
    assert isinstance(value, tuple)
    return value in ((), ("*",), ("none",)) or all(map(_THROTTLED.fullmatch, value))


THROTTLED_REPLICAS = Check("*, none, or a list of partition:broker", _throttled_replicas)
COMPRESSION_TYPE = one_of("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
GZIP_LEVEL = Check("-1, or 1 to 9", lambda value: value == -1 or between(1, 9).accepts(value))
CLEANUP_POLICY = each_of("delete", "compact")
TIMESTAMP_TYPE = one_of("CreateTime", "LogAppendTime")

TOPIC_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "cleanup.policy",
        Kind.LIST,
        ("delete",),
        "What happens to old records: delete drops whole segments by age and size, compact keeps the last record of "
        "each key; both can be combined, and an empty list keeps everything.",
        CLEANUP_POLICY,
        synonyms=(Synonym("log.cleanup.policy"),),
    ),
    Setting(
        "compression.gzip.level",
        Kind.INT,
        -1,
        STORED_ONLY + "batches are never recompressed.",
        GZIP_LEVEL,
        synonyms=(Synonym("compression.gzip.level"),),
        acts=False,
    ),
    Setting(
        "compression.lz4.level",
        Kind.INT,
        9,
        STORED_ONLY + "batches are never recompressed.",
        between(1, 17),
        synonyms=(Synonym("compression.lz4.level"),),
        acts=False,
    ),
    Setting(
        "compression.type",
        Kind.STRING,
        "producer",
        STORED_ONLY + "batches stay as their producer compressed them.",
        COMPRESSION_TYPE,
        synonyms=(Synonym("compression.type"),),
        acts=False,
    ),
    Setting(
        "compression.zstd.level",
        Kind.INT,
        3,
        STORED_ONLY + "batches are never recompressed.",
        between(-131072, 22),
        synonyms=(Synonym("compression.zstd.level"),),
        acts=False,
    ),
    Setting(
        "delete.retention.ms",
        Kind.LONG,
        24 * HOUR_MS,
        "How long a compacted topic keeps a tombstone (a record without value) after it was first compacted.",
        at_least(0),
        synonyms=(Synonym("log.cleaner.delete.retention.ms"),),
    ),
    Setting(
        "file.delete.delay.ms",
        Kind.LONG,
        60_000,
        STORED_ONLY + "files of deleted segments go at once, readers keep what they have open.",
        at_least(0),
        synonyms=(Synonym("log.segment.delete.delay.ms"),),
        acts=False,
    ),
    Setting(
        "flush.messages",
        Kind.LONG,
        LONG_MAX,
        STORED_ONLY + "log.flush.policy decides when records are forced to disk.",
        at_least(1),
        synonyms=(Synonym("log.flush.interval.messages"),),
        acts=False,
    ),
    Setting(
        "flush.ms",
        Kind.LONG,
        LONG_MAX,
        STORED_ONLY + "log.flush.policy decides when records are forced to disk.",
        at_least(0),
        synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        acts=False,
    ),
    Setting("follower.replication.throttled.replicas", Kind.LIST, (), ONE_NODE, THROTTLED_REPLICAS, acts=False),
    Setting(
        "index.interval.bytes",
        Kind.INT,
        4096,
        "Bytes of log between two entries of the offset and time indexes.",
        at_least(0),
        synonyms=(Synonym("log.index.interval.bytes"),),
    ),
    Setting("leader.replication.throttled.replicas", Kind.LIST, (), ONE_NODE, THROTTLED_REPLICAS, acts=False),
    Setting(
        "local.retention.bytes",
        Kind.LONG,
        -2,
        NO_TIERS,
        at_least(-2),
        synonyms=(Synonym("log.local.retention.bytes"),),
        acts=False,
    ),
    Setting(
        "local.retention.ms",
        Kind.LONG,
        -2,
        NO_TIERS,
        at_least(-2),
        synonyms=(Synonym("log.local.retention.ms"),),
        acts=False,
    ),
    Setting(
        "max.compaction.lag.ms",
        Kind.LONG,
        LONG_MAX,
        "A record of a compacted topic is compacted at the latest this long after it was written.",
        at_least(1),
        synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),),
    ),
    Setting(
        "max.message.bytes",
        Kind.INT,
        1_048_588,
        "The largest batch a producer may send, as it arrives (that is, compressed).",
        at_least(0),
        synonyms=(Synonym("message.max.bytes"),),
    ),
    Setting(
        "message.timestamp.after.max.ms",
        Kind.LONG,
        HOUR_MS,
        "How far ahead of the broker's clock a record's timestamp may be; later ones are refused.",
        at_least(0),
        synonyms=(Synonym("log.message.timestamp.after.max.ms"),),
    ),
    Setting(
        "message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        "How far behind the broker's clock a record's timestamp may be; earlier ones are refused.",
        at_least(0),
        synonyms=(Synonym("log.message.timestamp.before.max.ms"),),
    ),
    Setting(
        "message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        "Whose time a record carries: the producer's (CreateTime) or that of its arrival (LogAppendTime).",
        TIMESTAMP_TYPE,
        synonyms=(Synonym("log.message.timestamp.type"),),
    ),
    Setting(
        "min.cleanable.dirty.ratio",
        Kind.DOUBLE,
        0.5,
        "A log is compacted when at least this part of it was written since the last compaction.",
        between(0, 1),
        synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),),
    ),
    Setting(
        "min.compaction.lag.ms",
        Kind.LONG,
        0,
        "How long a record of a compacted topic is sure to stay after it was written.",
        at_least(0),
        synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),),
    ),
    Setting(
        "min.insync.replicas",
        Kind.INT,
        1,
        STORED_ONLY + "there is one replica of every partition, and no more can be asked for.",
        at_least(1),
        synonyms=(Synonym("min.insync.replicas"),),
        acts=False,
    ),
    Setting(
        "preallocate",
        Kind.BOOLEAN,
        False,
        STORED_ONLY + "room for growing logs is reserved in steps by itself.",
        synonyms=(Synonym("log.preallocate"),),
        acts=False,
    ),
    Setting("remote.log.copy.disable", Kind.BOOLEAN, False, NO_TIERS, acts=False),
    Setting("remote.log.delete.on.disable", Kind.BOOLEAN, False, NO_TIERS, acts=False),
    Setting(
        "remote.storage.enable",
        Kind.BOOLEAN,
        False,
        "Only false: there is no tiered storage.",
        Check("false: there is no tiered storage", lambda value: value is False),
        acts=False,
    ),
    Setting(
        "retention.bytes",
        Kind.LONG,
        -1,
        "Size of a partition above which its oldest segments are deleted; -1 means no limit.",
        synonyms=(Synonym("log.retention.bytes"),),
    ),
    Setting(
        "retention.ms",
        Kind.LONG,
        168 * HOUR_MS,
        "Age at which segments are deleted, by the newest timestamp in each; -1 keeps them for ever.",
        at_least(-1),
        synonyms=(
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", HOUR_MS),
        ),
    ),
    Setting(
        "segment.bytes",
        Kind.INT,
        2**30,
        "Size at which a new segment file is begun. Retention and compaction work on whole segments.",
        at_least(SEGMENT_BYTES_MIN),
        synonyms=(Synonym("log.segment.bytes"),),
    ),
    Setting(
        "segment.index.bytes",
        Kind.INT,
        10 * 2**20,
        STORED_ONLY + "indexes grow as needed.",
        at_least(4),
        synonyms=(Synonym("log.index.size.max.bytes"),),
        acts=False,
    ),
    Setting(
        "segment.jitter.ms",
        Kind.LONG,
        0,
        STORED_ONLY + "segments are not rolled all at one time, since only appends roll them.",
        at_least(0),
        synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)),
        acts=False,
    ),
    Setting(
        "segment.ms",
        Kind.LONG,
        168 * HOUR_MS,
        "Age at which a new segment is begun even if the current one is small, so that retention can act.",
        at_least(1),
        synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    ),
    Setting(
        "unclean.leader.election.enable",
        Kind.BOOLEAN,
        False,
        ONE_NODE,
        synonyms=(Synonym("unclean.leader.election.enable"),),
        acts=False,
    ),
)

TOPIC_SETTING: dict[str, Setting] = {setting.name: setting for setting in TOPIC_SETTINGS}
