"""The loss ledger: a topic in the cluster that has lost the records, so that it is where people look for them.

for loss in lowwater.spark.losses(bootstrap="localhost:9092"):
    print(loss.topic, loss.partition, loss.first, loss.behind)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from lowwater.client.admin.blocking import Admin
from lowwater.client.admin.topic_changes import NewTopic
from lowwater.client.errors import BrokerError, UnknownTopicError
from lowwater.client.producer import Producer
from lowwater.client.reader import read
from lowwater.errors import ErrorCode, LowwaterError
from lowwater.spark.loss_records import Loss, from_record, put_together, to_record

__all__ = ["LEDGER", "Loss", "enter", "losses"]

LOG = logging.getLogger("lowwater.spark")
LEDGER = "__lowwater_losses"
_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1"}
_QUICK = {"topic.metadata.propagation.max.ms": "1000"}


def losses(
    bootstrap: str | Sequence[str] | None = None, *, config: Mapping[str, object] | None = None, ledger: str = LEDGER
) -> list[Loss]:
    """All that queries have gone on without, by when it was found; nothing when there is no ledger."""
    try:
        table = read(
            ledger,
            bootstrap=bootstrap,
            config={**_QUICK, **(config or {})},
            order=None,
            stop="latest",
            columns=["value"],
        ).to_table()
    except UnknownTopicError:
        return []
    found = (from_record(value) for value in table.column("value").to_pylist())
    return put_together(loss for loss in found if loss is not None)


def enter(settings: Mapping[str, str], found: Iterable[Loss], ledger: str = LEDGER) -> None:
    """Write them down. A ledger that cannot be written is told, and stops nobody: the query was told to go on."""
    rows = [to_record(loss) for loss in found]
    if not rows or not ledger:
        return
    try:
        _make(settings, ledger)
        with Producer(config=dict(settings)) as producer:
            for key, value in rows:
                producer.send(ledger, value, key=key)
            producer.flush()
    except LowwaterError as error:
        LOG.warning("%d ranges that are gone could not be written into %s: %s", len(rows), ledger, error)


def _make(settings: Mapping[str, str], ledger: str) -> None:
    """It is kept for ever: what is lost stays lost."""
    admin = Admin(config=dict(settings))
    try:
        admin.create_topics([NewTopic(ledger, partitions=1, config=_CONFIG)]).checked()
    except BrokerError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
    finally:
        admin.close()
