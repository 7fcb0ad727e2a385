"""All that is watched in a run. A violation is noted with its time; the seed reproduces it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.sim.groups.client import TopicFacts
from tests.sim.groups.judge_classic import ClassicJudge
from tests.sim.groups.judge_commits import CommitJudge
from tests.sim.groups.judge_consumer import ConsumerJudge
from tests.sim.groups.judge_mixed import MixedJudge
from tests.sim.groups.network import Exchange

CLASSIC, CONSUMER, MIXED = "classic", "consumer", "mixed"
PROBLEMS_MAX = 20


def kind_of(group: str) -> str:
    """Groups are named after their protocol, so that one judge knows which rules are meant."""
    return group.split("-")[0]


class Judge:
    """`slack_ms`: how long after a decision its answer may leave, where the moment of the decision is not known."""

    def __init__(self, consumer_session_ms: int, slack_ms: float = 1) -> None:
        self.problems: list[str] = []
        self.now_ms = 0.0
        self.commits = CommitJudge(self.report)
        self.classic = ClassicJudge(self.report, slack_ms)
        self.consumer = ConsumerJudge(self.report, consumer_session_ms, slack_ms)
        self.mixed = MixedJudge(self.report, self.consumer, slack_ms)
        self._open: dict[Exchange, None] = {}
        self._delivered = 0
        self.answered = 0

    def report(self, text: str) -> None:
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(f"at {self.now_ms:.0f} ms: {text}")

    def delivered(self, exchange: Exchange, now_ms: float, wall_ms: int) -> None:
        self.now_ms = now_ms
        exchange.delivered_ms = now_ms
        exchange.delivered_at = self._delivered
        self._delivered += 1
        self._open[exchange] = None
        self.commits.delivered(exchange, wall_ms)
        kind = kind_of(getattr(exchange.request, "group_id", ""))
        if kind == CLASSIC:
            self.classic.delivered(exchange, now_ms)
        elif kind == MIXED:
            self.mixed.delivered(exchange)
        self.consumer.delivered(exchange)

    def issued(self, exchange: Exchange, now_ms: float, topics: Mapping[str, TopicFacts]) -> None:
        self.now_ms = now_ms
        exchange.replies += 1
        self.answered += 1
        if exchange.replies > 1:
            self.report(f"{exchange} was answered twice")
            return
        self._open.pop(exchange, None)
        if exchange.decided_ms < 0:
            exchange.decided_ms = now_ms
        self.commits.issued(exchange)
        self.classic.issued(exchange, now_ms)
        self.consumer.issued(exchange, now_ms, topics)
        if kind_of(getattr(exchange.request, "group_id", "")) == MIXED:
            self.mixed.issued(exchange, now_ms, topics)

    def group_gone(self, group: str) -> None:
        self.classic.forget(group)
        self.consumer.forget(group)
        self.mixed.forget(group)

    def crashed(self, now_ms: float) -> None:
        self.now_ms = now_ms
        self._open.clear()
        self.classic.crashed(now_ms)
        self.consumer.crashed(now_ms)
        self.mixed.crashed(now_ms)

    def reloaded(self, now_ms: float) -> None:
        self.classic.reloaded(now_ms)
        self.consumer.reloaded(now_ms)
        self.mixed.reloaded(now_ms)

    @property
    def waiting(self) -> list[Exchange]:
        """Delivered to the broker that lives, and not answered."""
        return list(self._open)
