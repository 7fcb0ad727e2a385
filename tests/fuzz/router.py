"""Fuzz the router without sockets, on virtual time: `python -m tests.fuzz.router --attacks 100000`.

Every run of a seed is the same to the last byte. What is not a WireError, a reply or a wait is a defect.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from dataclasses import dataclass, field

from tests.fuzz import plausible
from tests.fuzz.attacks import PARK_MS, attack
from tests.fuzz.plausible import FUZZED_TOPICS

from lowwater.broker.router import Reply, Waits
from lowwater.errors import WireError
from lowwater.pending import Pending
from lowwater.testing.virtual_time import VirtualBroker
from lowwater.wire.messages import CreateTopicsRequest, MetadataRequest
from lowwater.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig

FRAME_LIMIT = 1 << 20
ATTACKS_PER_SECOND = 100


@dataclass(slots=True)
class Report:
    seed: int
    frames: int = 0
    answered: int = 0
    closed: int = 0
    waited: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"seed {self.seed}: {self.frames} frames, {self.answered} answered, {self.closed} ended their connection"
        return "\n".join([f"{head}, {self.waited} waited", *self.problems])


def run(attacks: int, *, seed: int, first: int = 0) -> Report:
    """Dispatch the frames of attacks [first, first + attacks), then let all time pass and look at what is left."""
    report = Report(seed)
    broker = _broker()
    waiting: list[Pending[Reply | None]] = []
    for number in range(first, first + attacks):
        one = attack(seed, number, FRAME_LIMIT)
        parked: list[Pending[Reply | None]] = []
        for frame in one.frames:
            _dispatch(broker, frame, number, report, parked)
        if one.may_park():
            _leave(parked)
        waiting += parked
        if number % ATTACKS_PER_SECOND == 0:
            broker.time.advance(1000)
    _judge(broker, report, waiting)
    return report


def _broker() -> VirtualBroker:
    broker = VirtualBroker()
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            assignments=[],
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
        )
        for name, settings in FUZZED_TOPICS.items()
    ]
    created = broker.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000))
    plausible.topic_ids[:] = [topic.topic_id for topic in created.topics]
    return broker


def _dispatch(
    broker: VirtualBroker, frame: bytes, number: int, report: Report, waiting: list[Pending[Reply | None]]
) -> None:
    report.frames += 1
    try:
        answer = broker.dispatch(frame)
        broker.time.settle()
    except WireError:
        report.closed += 1
    except Exception:
        report.problems.append(f"attack {number}: {traceback.format_exc()}")
    else:
        if isinstance(answer, Waits):
            report.waited += 1
            waiting.append(answer)
        else:
            report.answered += 1


def _leave(parked: list[Pending[Reply | None]]) -> None:
    """The client goes before it is answered."""
    for pending in parked:
        pending.abandon()
    parked.clear()


def _judge(broker: VirtualBroker, report: Report, waiting: list[Pending[Reply | None]]) -> None:
    """Everyone who waits is answered in time, nothing is left behind, and the broker still does its work."""
    try:
        broker.time.advance(PARK_MS)
        for pending in waiting:
            if not pending.done:
                report.problems.append("a request still waits after all time has passed")
            else:
                _settled(pending, report)
        broker.ask(MetadataRequest(topics=None))
        left = sum(len(one.waiting_fetches) for topic in broker.broker.topics for one in topic.opened())
        if left:
            report.problems.append(f"{left} fetches are still registered")
        broker.stop()
        broker.start()
        broker.ask(MetadataRequest(topics=None))
    except Exception:
        report.problems.append(traceback.format_exc())


def _settled(pending: Pending[Reply | None], report: Report) -> None:
    try:
        pending.result()
    except WireError:
        report.closed += 1
    except Exception:
        report.problems.append(traceback.format_exc())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.router", description=__doc__)
    parser.add_argument("--attacks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    report = run(arguments.attacks, seed=arguments.seed, first=arguments.first)
    print(report)
    return int(bool(report.problems))


if __name__ == "__main__":
    sys.exit(main())
