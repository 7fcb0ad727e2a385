"""Consume, transform, produce, in transactions: one worker, in a process that is killed now and then.

It tells on standard output what it is about to send, and how each transaction ended, a JSON line each: what it has told
stands, whatever becomes of it. What it cannot get over ends the process; whoever started it starts another.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import sys
from collections import defaultdict
from typing import Any

from tests.conformance.clients.base import ClientError
from tests.conformance.transactions.aio_kafka import AioKafkaTransactor
from tests.conformance.transactions.confluent import ConfluentTransactor
from tests.conformance.transactions.face import Transactor
from tests.conformance.transactions.kafka_python import KafkaPythonTransactor
from tests.conformance.transactions.lines import JavaTransactor
from tests.crash.txn_intake import (
    AioKafkaIntake,
    ConfluentIntake,
    Intake,
    KafkaPythonIntake,
    NewConfluentIntake,
    Share,
    Taken,
)
from tests.crash.values import name_of, value_of

LIBRARIES: dict[str, tuple[type[Transactor], type[Intake]]] = {
    "confluent": (ConfluentTransactor, ConfluentIntake),
    "confluent-848": (ConfluentTransactor, NewConfluentIntake),
    "kafka-python": (KafkaPythonTransactor, KafkaPythonIntake),
    "aiokafka": (AioKafkaTransactor, AioKafkaIntake),
    # The one producer that takes the new path: an epoch per transaction, partitions added by the broker.
    "java": (JavaTransactor, KafkaPythonIntake),
}
INPUT = "input"
INPUT_PARTITIONS = 4
OUTPUT_PARTITIONS = 3
TIMEOUT_MS = 30_000
TAKEN_MAX = 12
VALUE_BYTES = 100
CHANCE_OF_ABORT = 0.1
SEPARATOR = b"/"


def output_of(library: str) -> str:
    return f"output-{library}"


def tell(event: str, **more: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **more}) + "\n")
    sys.stdout.flush()


class Worker:
    def __init__(self, run: int, library: str, share: Share) -> None:
        transactor, intake = LIBRARIES[library]
        self.name = f"{share.worker}.{run}"
        self.output = output_of(library)
        self.numbers = itertools.count(1)
        self.draw = random.Random(self.name)
        self.producer = transactor(share.bootstrap, share.worker, TIMEOUT_MS)
        self.producer.init()
        self.intake = intake(share)
        tell("ready")

    def work(self) -> None:
        while True:
            if taken := self.intake.take(TAKEN_MAX):
                self._transform(taken)

    def _transform(self, taken: list[Taken]) -> None:
        transaction = f"{self.name}.{next(self.numbers)}"
        made: defaultdict[int, list[bytes]] = defaultdict(list)
        for each in taken:
            name = name_of(each.value) + SEPARATOR + transaction.encode()
            made[each.offset % OUTPUT_PARTITIONS].append(name)
        told = [(partition, name.decode()) for partition, names in made.items() for name in names]
        tell("sending", transaction=transaction, records=told)
        try:
            self.producer.begin()
            offsets = self._send(made)
            ends = {(INPUT, each.partition): each.offset + 1 for each in taken}
            self.producer.send_offsets(self.intake.member(), ends)
        except ClientError as error:
            self._give_up(taken, transaction, str(error))
            return
        if self.draw.random() < CHANCE_OF_ABORT:
            self._give_up(taken, transaction, "by chance")
            return
        self.producer.commit()
        tell("committed", transaction=transaction, offsets=offsets)

    def _send(self, made: dict[int, list[bytes]]) -> list[int]:
        return [
            offset
            for partition, names in made.items()
            for offset in self.producer.send(
                self.output, *(value_of(name, VALUE_BYTES) for name in names), partition=partition
            )
        ]

    def _give_up(self, taken: list[Taken], transaction: str, why: str) -> None:
        """Nothing asked for a commit: whatever happens to the abort, nobody may read it."""
        tell("aborted", transaction=transaction, why=why)
        self.producer.abort()
        self.intake.give_back(taken)


def main() -> None:
    logging.disable(logging.CRITICAL)
    name, run, library, bootstrap, group, partitions = sys.argv[1:]
    share = Share(name, bootstrap, INPUT, group, tuple(map(int, partitions.split(","))))
    try:
        Worker(int(run), library, share).work()
    except ClientError as error:
        tell("ended", why=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
