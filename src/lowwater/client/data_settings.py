"""The settings of clients that concern reading, groups and producing."""

from __future__ import annotations

from lowwater.config.setting import INT_MAX, Kind, Setting, at_least, between, one_of

_RESETS = (
    "error", "none", "earliest", "beginning", "smallest", "latest", "end", "largest",
)  # fmt: skip

READING_SETTINGS = (
    Setting("fetch.min.bytes", Kind.INT, 1, "A Fetch waits until so much is there.", between(1, INT_MAX)),
    Setting("fetch.wait.max.ms", Kind.INT, 500, "How long a Fetch waits for that.", between(0, INT_MAX)),
    Setting("fetch.max.bytes", Kind.INT, 52_428_800, "The most that one Fetch brings.", between(1, INT_MAX)),
    Setting("max.partition.fetch.bytes", Kind.INT, 1_048_576, "The most that one Fetch brings of one "
            "partition. Unless set: up to 4 MiB of few partitions, and less of many.",
            between(1, INT_MAX)),
    Setting("isolation.level", Kind.STRING, "read_committed", "Whether records of open and aborted transactions show.",
            one_of("read_committed", "read_uncommitted")),
    Setting("auto.offset.reset", Kind.STRING, "error", "What to do when a start is outside the log.", one_of(*_RESETS)),
    Setting("check.crcs", Kind.BOOLEAN, True,
            "Batches are checked against their checksum: here always, whatever this says."),
    Setting("enable.partition.eof", Kind.BOOLEAN, False, "Whether the end of a partition is told."),
)  # fmt: skip

GROUP_MEMBER_SETTINGS = (
    Setting("group.id", Kind.STRING, None, "The group whose committed offsets are used."),
    Setting("group.instance.id", Kind.STRING, None, "A static member's own name, by which it is known again."),
    Setting("group.protocol", Kind.STRING, "classic", "Who shares a group's partitions out: one of its "
            "members (classic) or the broker (consumer, KIP-848).", one_of("classic", "consumer")),
    Setting("group.remote.assignor", Kind.STRING, None, "How the broker shares partitions, with the consumer "
            "protocol; unless given as it sees fit."),
    Setting("session.timeout.ms", Kind.INT, 45_000, "A member that is silent for so long is out.", between(1, INT_MAX)),
    Setting("heartbeat.interval.ms", Kind.INT, 3_000, "How often a member says that it is there.",
            between(1, INT_MAX)),
    Setting("max.poll.interval.ms", Kind.INT, 300_000, "A member that does not poll for so long is out.",
            between(1, INT_MAX)),
    Setting("enable.auto.commit", Kind.BOOLEAN, True, "Commit what was returned, from time to time."),
    Setting("enable.auto.offset.store", Kind.BOOLEAN, True,
            "Whether what was returned counts as read; if not, only commit() commits."),
    Setting("auto.commit.interval.ms", Kind.INT, 5_000, "How often.", between(0, INT_MAX)),
    Setting("partition.assignment.strategy", Kind.LIST, ("range",), "How the leader of the group shares partitions."),
)  # fmt: skip

PRODUCING_SETTINGS = (
    Setting("acks", Kind.STRING, "all", "When a write counts as done.", one_of("all", "-1", "1", "0")),
    Setting("linger.ms", Kind.DOUBLE, 5.0, "How long a batch waits for more records.", at_least(0)),
    Setting("batch.size", Kind.INT, 1_000_000, "The size of batches, before compression.", between(1, INT_MAX)),
    Setting("compression.type", Kind.STRING, "none", "How batches are compressed.",
            one_of("none", "gzip", "snappy", "lz4", "zstd")),
    Setting("compression.level", Kind.INT, -1, "-1: the codec's own default.", between(-1, 22)),
    Setting("enable.idempotence", Kind.BOOLEAN, True, "Whether a retry never writes twice."),
    Setting("delivery.timeout.ms", Kind.INT, 120_000, "How long a record may take, retries included.",
            between(1, INT_MAX)),
    Setting("retries", Kind.INT, INT_MAX, "How often a write is tried again within that time.", between(0, INT_MAX)),
    Setting("max.request.size", Kind.INT, 1_048_576, "The largest batch that is sent.", between(1_000, INT_MAX)),
    Setting("buffer.memory", Kind.LONG, 64 * 1024 * 1024, "Records that wait to be sent, in bytes.", at_least(1)),
    Setting("partitioner", Kind.STRING, "murmur2_random", "How a record's key chooses the partition.",
            one_of("murmur2_random", "murmur2", "consistent_random", "consistent", "random")),
    Setting("transactional.id", Kind.STRING, None, "The name under which this producer's transactions are known."),
    Setting("transaction.timeout.ms", Kind.INT, 60_000, "How long a transaction may stay open.", between(1, INT_MAX)),
)  # fmt: skip
