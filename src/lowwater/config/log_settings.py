"""The broker settings of logs: segments, retention, compaction, timestamps, flushing."""

from __future__ import annotations

from lowwater.config.setting import (
    LONG_MAX,
    Kind,
    Setting,
    Synonym,
    Update,
    at_least,
    between,
    one_of,
    unlimited_or_at_least,
)
from lowwater.config.topic_settings import (
    CLEANUP_POLICY,
    HOUR_MS,
    NO_TIERS,
    SEGMENT_BYTES_MIN,
    STORED_ONLY,
    TIMESTAMP_TYPE,
)

FLUSHED_BY_POLICY = STORED_ONLY + "log.flush.policy decides when records are forced to disk."


def _default_of(topic_setting: str, text: str) -> str:
    return f"{text} A topic's own `{topic_setting}` goes first."


FLUSHING = (
    Setting(
        "log.flush.policy",
        Kind.STRING,
        "acks",
        "When a produced record is forced to disk before it is acknowledged: acks (for acks=all), always (for acks=1 "
        "too), never (left to the operating system).",
        one_of("acks", "always", "never"),
        ours=True,
    ),
    Setting(
        "log.flush.interval.messages",
        Kind.LONG,
        LONG_MAX,
        FLUSHED_BY_POLICY,
        at_least(1),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "log.flush.interval.ms",
        Kind.LONG,
        None,
        FLUSHED_BY_POLICY,
        at_least(0),
        Update.CLUSTER_WIDE,
        (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")),
        acts=False,
    ),
    Setting("log.flush.scheduler.interval.ms", Kind.LONG, LONG_MAX, FLUSHED_BY_POLICY, at_least(0), acts=False),
)

SEGMENTS = (
    Setting(
        "log.segment.bytes",
        Kind.INT,
        2**30,
        _default_of("segment.bytes", "Size at which a new segment file is begun."),
        at_least(SEGMENT_BYTES_MIN),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.roll.ms",
        Kind.LONG,
        None,
        _default_of("segment.ms", "Age at which a new segment is begun; not set: see `log.roll.hours`."),
        at_least(1),
        Update.CLUSTER_WIDE,
        (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)),
    ),
    Setting("log.roll.hours", Kind.INT, 168, "As `log.roll.ms`, in hours.", at_least(1)),
    Setting(
        "log.roll.jitter.ms",
        Kind.LONG,
        None,
        STORED_ONLY + "only appends roll segments, so they do not roll all at one time.",
        at_least(0),
        Update.CLUSTER_WIDE,
        (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)),
        acts=False,
    ),
    Setting("log.roll.jitter.hours", Kind.INT, 0, STORED_ONLY + "see `log.roll.jitter.ms`.", at_least(0), acts=False),
    Setting(
        "log.index.interval.bytes",
        Kind.INT,
        4096,
        _default_of("index.interval.bytes", "Bytes of log between two index entries."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.index.size.max.bytes",
        Kind.INT,
        10 * 2**20,
        STORED_ONLY + "indexes grow as needed.",
        at_least(4),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "log.segment.delete.delay.ms",
        Kind.LONG,
        60_000,
        STORED_ONLY + "files of deleted segments go at once, readers keep what they have open.",
        at_least(0),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "log.preallocate",
        Kind.BOOLEAN,
        False,
        STORED_ONLY + "room for growing logs is reserved in steps by itself.",
        update=Update.CLUSTER_WIDE,
        acts=False,
    ),
)

TIMESTAMPS = (
    Setting(
        "log.message.timestamp.type",
        Kind.STRING,
        "CreateTime",
        _default_of("message.timestamp.type", "Whose time a record carries: the producer's, or that of its arrival."),
        TIMESTAMP_TYPE,
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.message.timestamp.before.max.ms",
        Kind.LONG,
        LONG_MAX,
        _default_of("message.timestamp.before.max.ms", "How far behind the clock a record's timestamp may be."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.message.timestamp.after.max.ms",
        Kind.LONG,
        HOUR_MS,
        _default_of("message.timestamp.after.max.ms", "How far ahead of the clock a record's timestamp may be."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
)

RETENTION = (
    Setting(
        "log.retention.ms",
        Kind.LONG,
        None,
        _default_of("retention.ms", "Age at which segments are deleted, -1 never; not set: `log.retention.minutes`."),
        unlimited_or_at_least(1),
        Update.CLUSTER_WIDE,
        (
            Synonym("log.retention.ms"),
            Synonym("log.retention.minutes", 60_000),
            Synonym("log.retention.hours", HOUR_MS),
        ),
    ),
    Setting(
        "log.retention.minutes",
        Kind.INT,
        None,
        "As `log.retention.ms`, in minutes; not set: `log.retention.hours`.",
        unlimited_or_at_least(1),
    ),
    Setting("log.retention.hours", Kind.INT, 168, "As `log.retention.ms`, in hours.", unlimited_or_at_least(1)),
    Setting(
        "log.retention.bytes",
        Kind.LONG,
        -1,
        _default_of("retention.bytes", "Size of a partition above which its oldest segments are deleted, -1 never."),
        update=Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.retention.check.interval.ms",
        Kind.LONG,
        300_000,
        "How often logs are looked through for segments to delete.",
        at_least(1),
    ),
    Setting("log.local.retention.bytes", Kind.LONG, -2, NO_TIERS, at_least(-2), Update.CLUSTER_WIDE, acts=False),
    Setting("log.local.retention.ms", Kind.LONG, -2, NO_TIERS, at_least(-2), Update.CLUSTER_WIDE, acts=False),
)

COMPACTION = (
    Setting(
        "log.cleanup.policy",
        Kind.LIST,
        ("delete",),
        _default_of("cleanup.policy", "What happens to old records: delete, compact, both, or nothing."),
        CLEANUP_POLICY,
        Update.CLUSTER_WIDE,
    ),
    Setting("log.cleaner.enable", Kind.BOOLEAN, True, "Whether topics with the policy compact are compacted."),
    Setting(
        "log.cleaner.backoff.ms",
        Kind.LONG,
        15_000,
        "How often logs are looked through for something to compact.",
        at_least(1),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.cleaner.dedupe.buffer.size",
        Kind.LONG,
        128 * 2**20,
        STORED_ONLY + "one round of compaction takes a million keys at most, a log with more takes several rounds.",
        at_least(2**20),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "log.cleaner.threads",
        Kind.INT,
        1,
        STORED_ONLY + "one log is compacted at a time.",
        at_least(0),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "log.cleaner.delete.retention.ms",
        Kind.LONG,
        24 * HOUR_MS,
        _default_of("delete.retention.ms", "How long tombstones stay after they were first compacted."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.cleaner.min.cleanable.ratio",
        Kind.DOUBLE,
        0.5,
        _default_of("min.cleanable.dirty.ratio", "Part of a log that must be new before it is compacted."),
        between(0, 1),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.cleaner.min.compaction.lag.ms",
        Kind.LONG,
        0,
        _default_of("min.compaction.lag.ms", "How long a record is sure to stay after it was written."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "log.cleaner.max.compaction.lag.ms",
        Kind.LONG,
        LONG_MAX,
        _default_of("max.compaction.lag.ms", "A record is compacted at the latest this long after it was written."),
        at_least(1),
        Update.CLUSTER_WIDE,
    ),
)

LOG_SETTINGS: tuple[Setting, ...] = (*FLUSHING, *SEGMENTS, *TIMESTAMPS, *RETENTION, *COMPACTION)
