"""Looking at all groups again and again, in a thread of its own, and remembering how they fared.

Whoever asks over HTTP is answered from the last look. One group is looked at anew, and judged by what is remembered.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lowwater.client.admin.offsets import Bounds, bounds
from lowwater.client.admin.outcomes import Outcomes
from lowwater.client.admin.topics import list_topics
from lowwater.client.blocking import BlockingDriver
from lowwater.client.cluster import Cluster
from lowwater.client.config import ClientConfig
from lowwater.client.errors import ClientError
from lowwater.client.network import Network
from lowwater.http.courses import Courses
from lowwater.lag.collecting import Observer
from lowwater.lag.history import History
from lowwater.lag.judging import judge
from lowwater.lag.observation import Fault, GroupSeen, Observation
from lowwater.lag.report import Report
from lowwater.types import TopicPartition

logger = logging.getLogger(__name__)

REST = 4
"""So many times as long as a look took, nothing is asked: a large cluster is not kept busy by being watched."""
FIRST_LOOK_S = 10
PARTITIONS_MAX = 20_000
"""Topics beyond that have no rates."""
REBALANCES_KEPT = 20
RATES_OVER = 30


class Rebalance(NamedTuple):
    at_ms: int
    state: str
    members: int
    what: str


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the whole cluster brought. `failure`: why there is nothing newer."""

    report: Report
    seen: Mapping[str, GroupSeen] = field(default_factory=dict)
    ends: Mapping[TopicPartition, Bounds] = field(default_factory=dict)
    took_ms: float = 0.0
    failure: str | None = None

    @property
    def faults(self) -> list[Fault]:
        return [*self.report.faults, *([Fault("the cluster", self.failure)] if self.failure else [])]


class Watch:
    """The thread alone writes; the loop reads what is whole, and judges by a history that only grows under it."""

    def __init__(
        self, config: ClientConfig, *, interval_ms: int, allowed: int, on_look: Callable[[Look], None]
    ) -> None:
        self._config = config
        self._interval_s = interval_ms / 1000
        self._allowed = allowed
        self._on_look = on_look
        self._over = threading.Event()
        self._history = History()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._ends: dict[str, deque[tuple[int, int]]] = {}
        self._rebalances: dict[str, deque[Rebalance]] = {}
        self.courses = Courses()
        self.look = Look(Report(0, {}))
        self.has_looked = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        self._thread.start()

    async def close(self) -> None:
        self._over.set()
        await asyncio.to_thread(self._thread.join, FIRST_LOOK_S)

    async def first(self) -> Look:
        """The last look, once there was one."""
        try:
            await asyncio.wait_for(self.has_looked.wait(), FIRST_LOOK_S)
        except TimeoutError:
            raise ClientError("the cluster was not seen yet", advice="try again in a moment") from None
        return self.look

    def judge(self, seen: Observation) -> Look:
        """Somebody looked at some groups between two looks: judged by all that is remembered, and not remembered."""
        return Look(judge(seen, self._history, allowed=self._allowed), seen.groups)

    # ---- what was remembered

    def topic_rate(self, name: str) -> float | None:
        """Records a second that came in lately; None before two looks."""
        seen = list(self._ends.get(name, []))
        if len(seen) < 2:
            return None
        (began_ms, first), (now_ms, last) = seen[0], seen[-1]
        return max(last - first, 0) * 1000 / (now_ms - began_ms) if now_ms > began_ms else None

    def groups_of(self, topic: str) -> list[str]:
        groups = self.look.report.groups.values()
        return sorted(one.group for one in groups if any(each.topic == topic for each in one.partitions))

    def rebalances(self, group: str) -> list[Rebalance]:
        """The newest first."""
        return list(self._rebalances.get(group, ()))[::-1]

    # ---- the thread

    def _run(self) -> None:
        driver = BlockingDriver(self._config)
        cluster = Cluster(Network(self._config, driver))
        observer = Observer(cluster)
        try:
            wait_s = 0.0
            while not self._over.wait(wait_s):
                began_ms = driver.monotonic_ms()
                self._look_around(driver, cluster, observer)
                wait_s = max(self._interval_s, REST * (driver.monotonic_ms() - began_ms) / 1000)
        finally:
            cluster.network.close()
            driver.close()

    def _look_around(self, driver: BlockingDriver, cluster: Cluster, observer: Observer) -> None:
        began_ms = driver.monotonic_ms()
        try:
            seen = driver.run(observer.observe())
            self._history.take(seen)
            report = judge(seen, self._history, allowed=self._allowed)
            ends = driver.run(_ends(cluster))
            self._note(seen, report, ends)
            look = Look(report, seen.groups, dict(ends), driver.monotonic_ms() - began_ms)
        except ClientError as error:
            look = Look(self.look.report, self.look.seen, self.look.ends, self.look.took_ms, str(error))
        except Exception:
            logger.exception("looking at the cluster failed")
            look = Look(self.look.report, self.look.seen, self.look.ends, self.look.took_ms, "looking at it failed")
        self.look = look
        self._loop.call_soon_threadsafe(self._looked, look)

    def _looked(self, look: Look) -> None:
        self.has_looked.set()
        self._on_look(look)

    def _note(self, seen: Observation, report: Report, ends: Outcomes[TopicPartition, Bounds]) -> None:
        self.courses.take(report)
        self._note_rebalances(seen)
        totals: dict[str, int] = {}
        for one, each in ends.items():
            totals[one.topic] = totals.get(one.topic, 0) + each.end
        unsure = {one.topic for one in ends.failed}
        for name in totals.keys() - unsure:
            total = totals[name]
            kept = self._ends.setdefault(name, deque(maxlen=RATES_OVER))
            if kept and total < kept[-1][1]:
                kept.clear()  # another topic of the same name
            kept.append((report.at_ms, total))
        for name in self._ends.keys() - totals.keys() - unsure:
            del self._ends[name]

    def _note_rebalances(self, seen: Observation) -> None:
        for name, now in seen.groups.items():
            before = self.look.seen.get(name)
            if before is None or now.state is None or before.state is None:
                continue
            if what := changed(before, now):
                kept = self._rebalances.setdefault(name, deque(maxlen=REBALANCES_KEPT))
                kept.append(Rebalance(seen.at_ms, now.state, len(now.members), what))
        for name in () if seen.faults else self._rebalances.keys() - seen.groups.keys():
            del self._rebalances[name]


def changed(before: GroupSeen, now: GroupSeen) -> str:
    """What happened to the members of a group, in words; empty when nothing did."""
    had = {one.member_id: one.partitions for one in before.members}
    has = {one.member_id: one.partitions for one in now.members}
    parts = []
    if came := has.keys() - had.keys():
        parts.append(f"{len(came)} joined")
    if went := had.keys() - has.keys():
        parts.append(f"{len(went)} left")
    if any(has[one] != had[one] for one in has.keys() & had.keys()):
        parts.append("partitions moved")
    if not parts and before.state != now.state:
        parts.append(f"was {before.state}")
    return ", ".join(parts)


async def _ends(cluster: Cluster) -> Outcomes[TopicPartition, Bounds]:
    topics = await list_topics(cluster)
    wanted = [TopicPartition(name, one.partition) for name, topic in topics.items() for one in topic.partitions]
    return await bounds(cluster, wanted[:PARTITIONS_MAX])


def summary(look: Look) -> dict[str, Any]:
    """What every listener is told of a look."""
    return {"at_ms": look.report.at_ms, "groups": len(look.report.groups), "errors": len(look.faults)}
