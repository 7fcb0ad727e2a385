"""-G: print the records of the partitions that a group gives to this member."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import FrameType

from lowwater.cli.cat.asked import Looks, Where
from lowwater.cli.cat.consuming import resolve_starts
from lowwater.cli.cat.listing import error_words, topics_meant
from lowwater.cli.cat.talk import CatError, Talk
from lowwater.cli.cat.tap import Tap
from lowwater.cli.connecting import Connection
from lowwater.client.cluster import Cluster
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import ClientError
from lowwater.client.fetching.events import Fetched
from lowwater.client.fetching.fetcher import Fetcher
from lowwater.client.group import Member
from lowwater.client.group_commits import Committer
from lowwater.client.network import Network
from lowwater.client.threaded import ThreadedDriver
from lowwater.pending import Pending
from lowwater.positions.position import StartPosition, Stored
from lowwater.types import TopicPartition

STORED = StartPosition((Stored(),))
COOPERATIVE = "cooperative-sticky"


def consume_as_member(
    connection: Connection,
    defaults: Mapping[str, str],
    topics: Sequence[str],
    where: Where,
    looks: Looks,
    talk: Talk,
) -> None:
    """Heartbeats go on in a thread of their own, also while whoever reads the output takes a break."""
    if not topics:
        raise CatError("Failed to subscribe to 0 topics: name them behind the options")
    with connection.open(defaults) as connected:
        problems = connected.run(connected.cluster.refresh([topic for topic in topics if not topic.startswith("^")]))
        for name, problem in problems.items():
            what = f"Topic {name} error: Subscribed topic not available: {name}: {error_words(problem.code)}"
            raise CatError(what + connected.run(topics_meant(connected.cluster, name, problem)))
    driver = ThreadedDriver(connected.config)
    session = Session(Cluster(Network(connected.config, driver)), topics, where, looks, talk)
    talk.say("Waiting for group rebalance")
    try:
        driver.run(session.start())
        while not session.tap.is_done:
            answers = driver.run(session.poll())
            with _uninterrupted():
                session.tap.pour(answers)
    finally:
        driver.run(session.close())
        driver.close()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits: what is printed also counts as printed. Who insists does not wait."""
    came: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


class Session:
    """One stay in a group.

    The coroutines run in the driver's thread while the caller waits. The hooks of the member run there at any time, so
    they leave what the tap has to know for the next poll.
    """

    def __init__(self, cluster: Cluster, topics: Sequence[str], where: Where, looks: Looks, talk: Talk) -> None:
        config = cluster.network.config
        self._cluster = cluster
        self._where = where
        self._talk = talk
        self._group = config.str("group.id")
        self._is_cooperative = COOPERATIVE in config.list("partition.assignment.strategy")
        self._fetcher = Fetcher(cluster, tell_ends=True)
        self.tap = Tap(cluster, self._fetcher, where, looks, talk, keeps=True)
        names = [topic for topic in topics if not topic.startswith("^")]
        # As librdkafka has it: the beginning of a name has to match.
        patterns = [f"(?:{topic}).*" for topic in topics if topic.startswith("^")]
        self._member = Member(Coordinator(cluster, self._group), self, topics=names, pattern="|".join(patterns) or None)
        self._commits = config.commits_by_itself
        self._committer = Committer(
            self._member.commit, cluster.network.driver, interval_ms=config.int("auto.commit.interval.ms")
        )
        self._changes: list[Callable[[], None]] = []
        self._seen: set[TopicPartition] = set()
        self._came: Pending[None] = Pending()

    # ---- for the caller

    async def start(self) -> None:
        self._member.start()

    async def poll(self) -> list[Fetched]:
        """What came, as soon as something did. What the last poll brought is done with, and may be committed."""
        self._settle()
        await self._member.enter_poll()
        try:
            await self._something()
            answers = self._fetcher.take()
        finally:
            self._member.exit_poll()
        if self._member.failure is not None:
            raise self._member.failure
        self._change()
        return answers

    async def close(self) -> None:
        """Commit what was printed, give up the partitions, leave."""
        try:
            self._settle()
            await self._member.close()
            self._committer.check()
        finally:
            self._fetcher.close()
            self._cluster.network.close()

    def _settle(self) -> None:
        self._change()
        self.tap.settle()
        if self._commits:
            self._committer.done(self.tap.positions)
            self._committer.check()

    def _change(self) -> None:
        changes, self._changes = self._changes, []
        for change in changes:
            change()

    def _something(self) -> Pending[None]:
        """Done when something came, the member failed, or the time to stop is there."""
        self._came = Pending()
        self._fetcher.fetched().on_done(lambda _: self._wake())
        patience_ms = self.tap.patience_ms()
        if patience_ms is not None:
            timer = self._cluster.network.driver.call_later(patience_ms, self._wake)
            self._came.on_done(lambda _: timer.cancel())
        return self._came

    def _wake(self) -> None:
        if not self._came.done:
            self._came.resolve(None)

    # ---- what the member is told

    async def assigned(self, partitions: list[TopicPartition]) -> None:
        self._tell("assigned", "assignment", partitions)
        # -o is for the first time: what was read here before goes on where that was committed.
        wishes = {one: (self._where.start_of(one) if one not in self._seen else None) or STORED for one in partitions}
        resolved = await resolve_starts(self._cluster, wishes, self._group)
        self._seen.update(partitions)
        self._changes.append(partial(self.tap.begin, resolved))
        self._fetcher.add(resolved.starts)

    async def revoked(self, partitions: list[TopicPartition]) -> None:
        self._tell("revoked", "revoke", partitions)
        self._let_go(partitions)  # first: what comes while the commit is under way is for others
        await self._committer.give_up(partitions)

    async def lost(self, partitions: list[TopicPartition]) -> None:
        self._tell("revoked", "revoke", partitions, note=", assignment lost")
        self._committer.forget(partitions)
        self._let_go(partitions)

    def failed(self, error: ClientError) -> None:
        self._wake()

    def _let_go(self, partitions: list[TopicPartition]) -> None:
        self._fetcher.remove([one for one in partitions if one in self._fetcher])
        self._changes.append(partial(self.tap.give_up, partitions))

    def _tell(self, eager: str, incremental: str, partitions: list[TopicPartition], note: str = "") -> None:
        listed = ", ".join(f"{one.topic} [{one.partition}]" for one in partitions)
        member = self._member.identity.member_id
        if not self._is_cooperative:
            self._talk.say(f"Group {self._group} rebalanced (memberid {member}): {eager}: {listed}")
        elif partitions:
            self._talk.say(
                f"Group {self._group} rebalanced: incremental {incremental} of {len(partitions)} partition(s) "
                f"(memberid {member}{note}, COOPERATIVE rebalance protocol): {listed}"
            )
