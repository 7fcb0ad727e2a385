"""The broker settings of consumer groups and committed offsets."""

from __future__ import annotations

from lowwater.config.setting import INT_MAX, Check, Kind, Setting, Synonym, Update, at_least, between, one_of
from lowwater.config.topic_settings import ONE_NODE, STORED_ONLY

ONE_THREAD = STORED_ONLY + "groups are coordinated by the event loop."
NOT_EMPTY = Check("a list of at least one name", lambda value: isinstance(value, tuple) and len(value) > 0)

CLASSIC_GROUPS = (
    Setting(
        "group.min.session.timeout.ms",
        Kind.INT,
        6_000,
        "The shortest session timeout a member of a classic group may ask for.",
    ),
    Setting(
        "group.max.session.timeout.ms",
        Kind.INT,
        1_800_000,
        "The longest session timeout a member of a classic group may ask for.",
    ),
    Setting(
        "group.initial.rebalance.delay.ms",
        Kind.INT,
        3_000,
        "How long an empty group waits for more members after the first one came, so that it does not rebalance for "
        "each of them.",
    ),
    Setting("group.max.size", Kind.INT, INT_MAX, "The most members a classic group may have.", at_least(1)),
)

CONSUMER_GROUPS = (
    Setting(
        "group.consumer.session.timeout.ms",
        Kind.INT,
        45_000,
        "How long a member of a consumer group may be silent before it is taken out.",
        at_least(1),
    ),
    Setting(
        "group.consumer.min.session.timeout.ms",
        Kind.INT,
        45_000,
        "The shortest session timeout that can be set for a single consumer group.",
        at_least(1),
    ),
    Setting(
        "group.consumer.max.session.timeout.ms",
        Kind.INT,
        60_000,
        "The longest session timeout that can be set for a single consumer group.",
        at_least(1),
    ),
    Setting(
        "group.consumer.heartbeat.interval.ms",
        Kind.INT,
        5_000,
        "How often the members of a consumer group are told to call.",
        at_least(1),
    ),
    Setting(
        "group.consumer.min.heartbeat.interval.ms",
        Kind.INT,
        5_000,
        "The shortest heartbeat interval that can be set for a single consumer group.",
        at_least(1),
    ),
    Setting(
        "group.consumer.max.heartbeat.interval.ms",
        Kind.INT,
        15_000,
        "The longest heartbeat interval that can be set for a single consumer group.",
        at_least(1),
    ),
    Setting("group.consumer.max.size", Kind.INT, INT_MAX, "The most members a consumer group may have.", at_least(1)),
    Setting(
        "group.consumer.assignors",
        Kind.LIST,
        ("uniform", "range", "roundrobin", "sticky"),
        "How partitions can be assigned in consumer groups; the first name is that of groups which do not ask for one. "
        "Names of the built-in assignors and of those that installed packages offer.",
        NOT_EMPTY,
    ),
    Setting(
        "group.consumer.migration.policy",
        Kind.STRING,
        "bidirectional",
        "Which groups may change between the classic and the consumer protocol while they have members.",
        one_of("bidirectional", "upgrade", "downgrade", "disabled"),
    ),
    Setting(
        "group.consumer.regex.refresh.interval.ms",
        Kind.INT,
        600_000,
        STORED_ONLY + "subscriptions by pattern notice topics as they come and go.",
        at_least(10_000),
        acts=False,
    ),
    Setting(
        "group.consumer.assignment.interval.ms",
        Kind.INT,
        1_000,
        STORED_ONLY + "assignments are made when they are needed.",
        at_least(0),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "group.consumer.min.assignment.interval.ms", Kind.INT, 0, STORED_ONLY + "as above.", at_least(0), acts=False
    ),
    Setting(
        "group.consumer.max.assignment.interval.ms",
        Kind.INT,
        15_000,
        STORED_ONLY + "as above.",
        at_least(0),
        acts=False,
    ),
)

OFFSETS = (
    Setting(
        "offsets.retention.minutes",
        Kind.INT,
        7 * 24 * 60,
        "How long committed offsets are kept: of a group that had members, since it became empty; of one that never "
        "had any, and of topics a group does not read any more, since the commit.",
        at_least(1),
    ),
    Setting(
        "offsets.retention.check.interval.ms",
        Kind.LONG,
        600_000,
        "How often to look for committed offsets that are too old.",
        at_least(1),
    ),
    Setting(
        "offset.metadata.max.bytes",
        Kind.INT,
        4096,
        "The longest text that may be stored with a committed offset.",
    ),
    Setting(
        "offsets.topic.num.partitions",
        Kind.INT,
        1,
        "Partitions of `__consumer_offsets`, when it is created. One lets all groups share each sync to disk.",
        at_least(1),
    ),
    Setting(
        "offsets.topic.segment.bytes",
        Kind.INT,
        100 * 2**20,
        "Segment size of `__consumer_offsets`, when it is created. Smaller segments are compacted sooner.",
        at_least(1),
    ),
    Setting(
        "offsets.topic.compression.codec",
        Kind.INT,
        0,
        "How batches of `__consumer_offsets` are compressed: 0 not at all, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        between(0, 4),
    ),
    Setting("offsets.topic.replication.factor", Kind.SHORT, 1, ONE_NODE, at_least(1), acts=False),
    Setting(
        "offsets.load.buffer.size",
        Kind.INT,
        5 * 2**20,
        STORED_ONLY + "groups are loaded a thousand records at a time.",
        at_least(1),
        acts=False,
    ),
    Setting(
        "offsets.commit.timeout.ms",
        Kind.INT,
        5_000,
        STORED_ONLY + "a commit is answered when it is on disk, or fails at once.",
        at_least(1),
        acts=False,
    ),
)

THREADS = (
    Setting("group.coordinator.threads", Kind.INT, 4, ONE_THREAD, at_least(1), acts=False),
    Setting("group.coordinator.background.threads", Kind.INT, 2, ONE_THREAD, at_least(1), acts=False),
    Setting(
        "group.coordinator.append.linger.ms",
        Kind.INT,
        -1,
        STORED_ONLY + "what is decided in one turn of the event loop is written together.",
        at_least(-1),
        acts=False,
    ),
    Setting(
        "group.coordinator.cached.buffer.max.bytes",
        Kind.INT,
        1_048_588,
        ONE_THREAD,
        at_least(512 * 1024),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
)

GROUP_SETTINGS: tuple[Setting, ...] = (*CLASSIC_GROUPS, *CONSUMER_GROUPS, *OFFSETS, *THREADS)

GROUP_OWN_SETTINGS: tuple[Setting, ...] = (
    Setting(
        "consumer.session.timeout.ms",
        Kind.INT,
        45_000,
        "How long a member of this consumer group may be silent before it is taken out.",
        at_least(1),
        synonyms=(Synonym("group.consumer.session.timeout.ms"),),
    ),
    Setting(
        "consumer.heartbeat.interval.ms",
        Kind.INT,
        5_000,
        "How often the members of this consumer group are told to call.",
        at_least(1),
        synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
    ),
    Setting(
        "consumer.assignment.interval.ms",
        Kind.INT,
        1_000,
        STORED_ONLY + "assignments are made when they are needed.",
        at_least(0),
        synonyms=(Synonym("group.consumer.assignment.interval.ms"),),
        acts=False,
    ),
)
GROUP_SETTING: dict[str, Setting] = {setting.name: setting for setting in GROUP_OWN_SETTINGS}
