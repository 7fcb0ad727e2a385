"""The settings of the broker itself, by Kafka's names where Kafka has them."""

from __future__ import annotations

from lowwater.config.group_settings import GROUP_SETTINGS
from lowwater.config.listeners import ONE_LISTENER
from lowwater.config.log_settings import LOG_SETTINGS
from lowwater.config.setting import INT_MAX, Check, Kind, Setting, Update, at_least, between
from lowwater.config.topic_settings import COMPRESSION_TYPE, GZIP_LEVEL, ONE_NODE, STORED_ONLY
from lowwater.config.transaction_settings import TRANSACTION_SETTINGS

MIB = 2**20
NO_QUORUM = STORED_ONLY + "one node needs no controller quorum."
SYSTEM_DECIDES = STORED_ONLY + "the operating system sizes socket buffers."
NO_SHARES = STORED_ONLY + "share groups are not served."
NO_THREADS = STORED_ONLY + "one event loop serves all connections."

ONE_DIRECTORY = Check("one directory", lambda value: isinstance(value, tuple) and len(value) == 1)


def _for_topics(name: str, text: str) -> str:
    return f"{text} A topic's own `{name}` goes first."


CONNECTIONS = (
    Setting(
        "listeners",
        Kind.LIST,
        ("PLAINTEXT://127.0.0.1:9092",),
        "Where the broker listens: PLAINTEXT://host:port. No host means every interface, port 0 a free one.",
        ONE_LISTENER,
    ),
    Setting(
        "advertised.listeners",
        Kind.LIST,
        None,
        "The address clients are told to connect to, where it differs from `listeners`: behind a container's port "
        "mapping, or under a public name.",
        ONE_LISTENER,
    ),
    Setting(
        "socket.request.max.bytes",
        Kind.INT,
        100 * MIB,
        "The largest request accepted; a connection that announces a larger one is closed.",
        at_least(1),
    ),
    Setting(
        "connection.queued.max.bytes",
        Kind.INT,
        MIB,
        "Bytes of one connection that may wait behind a request that is not answered yet; then the broker stops "
        "reading from it.",
        at_least(1),
        ours=True,
    ),
    Setting(
        "connection.write.buffer.bytes",
        Kind.INT,
        4 * MIB,
        "Unsent answers of one connection above which none of its further requests are served, until it reads.",
        at_least(1),
        ours=True,
    ),
    Setting(
        "connections.max.idle.ms",
        Kind.LONG,
        600_000,
        "A connection without traffic for this long is closed; a negative value keeps all.",
    ),
    Setting("max.connections", Kind.INT, INT_MAX, "Connections at one time; more are refused.", at_least(0)),
    Setting(
        "max.connections.per.ip",
        Kind.INT,
        INT_MAX,
        "Connections at one time from one address; more are refused.",
        at_least(0),
    ),
    Setting(
        "fetch.max.bytes",
        Kind.INT,
        55 * MIB,
        "The most a Fetch answers, whatever the client asks (a first batch larger than that still leaves whole).",
        at_least(1024),
    ),
    Setting(
        "max.incremental.fetch.session.cache.slots",
        Kind.INT,
        1000,
        "Fetch sessions kept at one time; consumers without one send their whole list of partitions each time.",
        at_least(0),
    ),
    Setting(
        "max.request.partition.size.limit",
        Kind.INT,
        2000,
        "The most partitions one DescribeTopicPartitions answers; a cursor leads to the rest.",
        at_least(1),
    ),
)

CLUSTER = (
    Setting("node.id", Kind.INT, 1, "The number of this node in all answers.", at_least(0)),
    Setting(
        "cluster.id",
        Kind.STRING,
        None,
        "The id of the cluster, kept in the data directory from the first start on; by default a random one.",
        ours=True,
    ),
    Setting("broker.rack", Kind.STRING, None, "The rack of this node, as told to clients."),
    Setting("log.dirs", Kind.LIST, None, "The data directory, exactly one; `--data-dir` goes first.", ONE_DIRECTORY),
    Setting("log.dir", Kind.LIST, None, "The data directory where `log.dirs` is not set.", ONE_DIRECTORY),
)

TOPICS = (
    Setting(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        True,
        "Create a topic when a client first asks for it and allows that.",
    ),
    Setting("delete.topic.enable", Kind.BOOLEAN, True, "Whether clients may delete topics."),
    Setting("num.partitions", Kind.INT, 1, "Partitions of a topic that is created without a number.", at_least(1)),
    Setting(
        "default.replication.factor",
        Kind.INT,
        1,
        "Replicas of a topic that is created without a number. One node can hold one: any other number makes "
        "such creations fail.",
        at_least(1),
    ),
    Setting(
        "min.insync.replicas",
        Kind.INT,
        1,
        ONE_NODE,
        at_least(1),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting("unclean.leader.election.enable", Kind.BOOLEAN, False, ONE_NODE, update=Update.CLUSTER_WIDE, acts=False),
    Setting(
        "message.max.bytes",
        Kind.INT,
        1_048_588,
        _for_topics("max.message.bytes", "The largest batch a producer may send, as it arrives."),
        at_least(0),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "compression.type",
        Kind.STRING,
        "producer",
        STORED_ONLY + "batches stay as their producer compressed them.",
        COMPRESSION_TYPE,
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "compression.gzip.level",
        Kind.INT,
        -1,
        STORED_ONLY + "batches are never recompressed.",
        GZIP_LEVEL,
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "compression.lz4.level",
        Kind.INT,
        9,
        STORED_ONLY + "batches are never recompressed.",
        between(1, 17),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
    Setting(
        "compression.zstd.level",
        Kind.INT,
        3,
        STORED_ONLY + "batches are never recompressed.",
        between(-131072, 22),
        Update.CLUSTER_WIDE,
        acts=False,
    ),
)

UNUSED = (
    Setting("process.roles", Kind.LIST, ("broker", "controller"), NO_QUORUM, acts=False),
    Setting("controller.quorum.voters", Kind.LIST, (), NO_QUORUM, acts=False),
    Setting("controller.quorum.bootstrap.servers", Kind.LIST, (), NO_QUORUM, acts=False),
    Setting("controller.listener.names", Kind.LIST, ("CONTROLLER",), NO_QUORUM, acts=False),
    Setting(
        "listener.security.protocol.map",
        Kind.STRING,
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        STORED_ONLY + "the one listener is plain text.",
        acts=False,
    ),
    Setting("inter.broker.listener.name", Kind.STRING, None, STORED_ONLY + "there is no other broker.", acts=False),
    Setting("share.coordinator.state.topic.replication.factor", Kind.SHORT, 1, NO_SHARES, at_least(1), acts=False),
    Setting("share.coordinator.state.topic.min.isr", Kind.SHORT, 1, NO_SHARES, at_least(1), acts=False),
    Setting("num.network.threads", Kind.INT, 3, NO_THREADS, at_least(1), Update.CLUSTER_WIDE, acts=False),
    Setting("num.io.threads", Kind.INT, 8, NO_THREADS, at_least(1), Update.CLUSTER_WIDE, acts=False),
    Setting("background.threads", Kind.INT, 10, NO_THREADS, at_least(1), Update.CLUSTER_WIDE, acts=False),
    Setting("num.recovery.threads.per.data.dir", Kind.INT, 2, NO_THREADS, at_least(1), Update.CLUSTER_WIDE, acts=False),
    Setting("socket.send.buffer.bytes", Kind.INT, 102_400, SYSTEM_DECIDES, acts=False),
    Setting("socket.receive.buffer.bytes", Kind.INT, 102_400, SYSTEM_DECIDES, acts=False),
)

BROKER_SETTINGS: tuple[Setting, ...] = (
    *CONNECTIONS,
    *CLUSTER,
    *TOPICS,
    *LOG_SETTINGS,
    *GROUP_SETTINGS,
    *TRANSACTION_SETTINGS,
    *UNUSED,
)
BROKER_SETTING: dict[str, Setting] = {setting.name: setting for setting in BROKER_SETTINGS}
