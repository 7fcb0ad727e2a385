"""The world of transactions around a whole broker: `python -m tests.sim.transactions.broker_world --seeds 100`."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.sim.transactions.broker_node import BrokerNode
from tests.sim.transactions.requests import TOPIC
from tests.sim.transactions.runs import Totals, run
from tests.sim.transactions.world import SCAN_MS, World

SETTINGS = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(SCAN_MS),
    "transaction.remove.expired.transaction.cleanup.interval.ms": "3000",
    "transaction.state.log.segment.bytes": "4000",
    "offsets.topic.segment.bytes": "4000",
    "log.segment.bytes": "4000",
    "log.retention.ms": "-1",
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "500",
}


class BrokerWorld(World):
    """Everything a producer says goes over the wire format, everything the broker knows through its logs."""

    def _make_node(self) -> None:
        settings = {
            **SETTINGS,
            "transactional.id.expiration.ms": self.draw.choice(("6000", "604800000", "604800000")),
            "transaction.state.log.num.partitions": self.draw.choice(("1", "3")),
            "offsets.topic.num.partitions": self.draw.choice(("1", "3")),
        }
        self._level = self.draw.choice((1, 2, 2))
        self.node = BrokerNode(settings, self.judge, self.draw, self.partitions)

    def _begin(self) -> None:
        self.node.start()
        self.node.settle()
        self.node.create_topic(TOPIC, self.partitions)
        self.node.set_level(self._level)
        self.node.broker.offload.held = True


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.transactions.broker_world", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", type=int, default=0, dest="first")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    totals = Totals()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        report = run(seed, kind=BrokerWorld)
        totals.count(report)
        for problem in report.problems:
            print(f"seed {seed}: {problem}", flush=True)
    print(totals)
    return int(bool(totals.violations))


if __name__ == "__main__":
    sys.exit(main())
