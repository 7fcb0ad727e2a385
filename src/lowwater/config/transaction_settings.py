"""The broker settings of transactions and of the producers that take part in them."""

from __future__ import annotations

from lowwater.config.setting import Kind, Setting, Update, at_least
from lowwater.config.topic_settings import ONE_NODE, STORED_ONLY

TRANSACTIONS = (
    Setting(
        "transaction.max.timeout.ms",
        Kind.INT,
        900_000,
        "The longest time a producer may ask for until its open transaction is aborted. Who asks for more is refused.",
        at_least(1),
    ),
    Setting(
        "transactional.id.expiration.ms",
        Kind.INT,
        7 * 24 * 3_600_000,
        "How long a transactional id without a transaction is remembered.",
        at_least(1),
    ),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        Kind.INT,
        10_000,
        "How often to look for open transactions that have run out of time.",
        at_least(1),
    ),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        Kind.INT,
        3_600_000,
        "How often to look for transactional ids that have expired.",
        at_least(1),
    ),
    Setting(
        "transaction.partition.verification.enable",
        Kind.BOOLEAN,
        True,
        "Whether a transactional batch of an older client is refused when its partition is not in the transaction. "
        "Without it such a batch can hold up readers for ever.",
        update=Update.CLUSTER_WIDE,
    ),
    Setting(
        "transaction.two.phase.commit.enable",
        Kind.BOOLEAN,
        False,
        STORED_ONLY + "no served request asks for a transaction without a timeout.",
        acts=False,
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.max.ms",
        Kind.INT,
        100,
        "How long a Produce that begins a transaction waits for the end of the one before.",
        at_least(0),
    ),
    Setting(
        "add.partitions.to.txn.retry.backoff.ms",
        Kind.INT,
        20,
        STORED_ONLY + "a Produce that waits is told when the transaction before has ended.",
        at_least(1),
        acts=False,
    ),
)

STATE_LOG = (
    Setting(
        "transaction.state.log.num.partitions",
        Kind.INT,
        1,
        "Partitions of `__transaction_state`, when it is created. One lets all transactions share each sync to disk.",
        at_least(1),
    ),
    Setting(
        "transaction.state.log.segment.bytes",
        Kind.INT,
        100 * 2**20,
        "Segment size of `__transaction_state`, when it is created. Smaller segments are compacted sooner.",
        at_least(1),
    ),
    Setting("transaction.state.log.replication.factor", Kind.SHORT, 1, ONE_NODE, at_least(1), acts=False),
    Setting("transaction.state.log.min.isr", Kind.INT, 1, ONE_NODE, at_least(1), acts=False),
    Setting(
        "transaction.state.log.load.buffer.size",
        Kind.INT,
        5 * 2**20,
        STORED_ONLY + "transactions are loaded a thousand records at a time.",
        at_least(1),
        acts=False,
    ),
)

PRODUCER_IDS = (
    Setting(
        "producer.id.expiration.ms",
        Kind.INT,
        24 * 3_600_000,
        "How long an idle producer is remembered, so that its repeats are found; in a transaction, always.",
        at_least(1),
        Update.CLUSTER_WIDE,
    ),
    Setting(
        "producer.id.expiration.check.interval.ms",
        Kind.INT,
        600_000,
        "How often to look for producers that have been idle for too long.",
        at_least(1),
    ),
)

TRANSACTION_SETTINGS: tuple[Setting, ...] = (*TRANSACTIONS, *STATE_LOG, *PRODUCER_IDS)
