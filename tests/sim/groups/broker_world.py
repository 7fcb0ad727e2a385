"""The world of groups around a whole broker: `python -m tests.sim.groups.broker_world --seeds 100`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping

from tests.sim.groups.broker_node import BrokerNode
from tests.sim.groups.client import TopicFacts
from tests.sim.groups.judge import Judge
from tests.sim.groups.liveness import judge_end
from tests.sim.groups.runs import Totals
from tests.sim.groups.world import CONSUMER_SESSION_MS, TOPICS, Report, World

SLACK_MS = 100
SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "2000",
    "offsets.retention.minutes": "1",
    "offsets.retention.check.interval.ms": "5000",
    "offsets.topic.segment.bytes": "4000",
    "log.cleaner.backoff.ms": "500",
    "log.retention.check.interval.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


class BrokerWorld(World):
    """Everything a group says goes over the wire format, everything it knows through the log on the disk."""

    def _make_node(self) -> None:
        self.judge = Judge(CONSUMER_SESSION_MS, SLACK_MS)
        settings = {
            **SETTINGS,
            "group.initial.rebalance.delay.ms": self.draw.choice(("0", "500", "3000")),
            "offsets.topic.num.partitions": self.draw.choice(("1", "1", "3")),
        }
        self.node = BrokerNode(settings, self.judge, self.draw)

    @property
    def topics(self) -> Mapping[str, TopicFacts]:
        return self.node.topic_facts if self.node.is_up else {}

    def _begin(self) -> None:
        self.node.groups = self.groups
        self.node.start()
        self.node.broker.offload.release()
        for name in TOPICS:
            self.node.create_topic(name, self.draw.randint(1, 4))
        self.node.broker.offload.held = True

    def _change_topics(self) -> None:
        if not self.node.is_up:
            return
        name = self.draw.choice(TOPICS)
        if name not in self.topics:
            self.node.create_topic(name, self.draw.randint(1, 4))
        elif self.draw.random() < 0.5:
            self.node.grow_topic(name)
        elif len(self.topics) > 1:
            self.node.delete_topic(name)


def run(seed: int) -> Report:
    world = BrokerWorld(seed)
    try:
        world.run()
        judge_end(world)
    except Exception as error:
        world.judge.report(f"{type(error).__name__}: {error}")
    world.report.problems = world.judge.problems
    return world.report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.groups.broker_world", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--from", type=int, default=0, dest="first")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    totals = Totals()
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        report = run(seed)
        totals.count(report)
        for problem in report.problems:
            print(f"seed {seed}: {problem}", flush=True)
    print(totals)
    return int(bool(totals.violations))


if __name__ == "__main__":
    sys.exit(main())
