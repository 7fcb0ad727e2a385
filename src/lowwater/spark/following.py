"""The group's offsets follow the checkpoint: behind it, beside the query, and never in its way.

Spark's own `commit` comes one batch late, and not at all for the last one. But each planning begins with the end of the
last batch that is finished, so that is what is committed. The checkpoint is the truth: when a commit fails, the query
goes on, and the next commit says it all.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from lowwater.client.admin.group_members import DescribedGroup, describe_groups
from lowwater.client.coordinator import Coordinator
from lowwater.client.errors import BrokerError, ClientError, CommitError, UnknownTopicError
from lowwater.client.flow import Flow, surface
from lowwater.errors import ErrorCode, LowwaterError
from lowwater.spark.commits import decide
from lowwater.spark.driver_client import DriverClient
from lowwater.spark.offsets import Offset
from lowwater.spark.options import SourceOptions
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")
REST_MS = 10_000
"""So long a commit that failed is not tried again."""
SETTLE_MS = 10_000
"""So long a query that has nothing left to do waits for its last commit."""
_SHOWN_MAX = 3


class GroupInUseError(LowwaterError):
    """The group has members, which commit to it as well."""


class Follower:
    """For the one thread that plans. `lineage` is that of offsets that have none of their own."""

    def __init__(self, client: DriverClient, group: str, lineage: str) -> None:
        self._client = client
        self._group = group
        self._commits = _Commits(client, group, lineage)
        self._told: Offset | None = None
        self._is_checked = False

    def check_members(self) -> None:
        """GroupInUseError when somebody reads as a member of the group. Asked once; who cannot be asked is trusted."""
        if self._is_checked:
            return
        self._is_checked = True
        try:
            described = self._client.run(describe_groups(self._client.cluster, [self._group]))
            found = described.checked().get(self._group)
        except ClientError as error:
            if not _is_unknown(error):
                LOG.warning("whether group %r has members cannot be found out: %s", self._group, error)
            return
        if found is not None and found.members:
            raise GroupInUseError(_members(found))

    def finished(self, offset: Offset) -> None:
        """A batch that ends there is done. Returns at once; Spark says the same many times a second."""
        if offset.is_initial or (offset == self._told and not self._commits.is_due):
            return
        self._told = offset
        self._client.run(self._commits.begin(offset))

    def settle(self, timeout_ms: float = SETTLE_MS) -> bool:
        """Whether everything is committed that was told, waited for so long."""
        flow = self._commits.flow
        if flow is not None and not self._client.wait(flow, timeout_ms):
            LOG.warning("group %r has not taken the offsets within %g s", self._group, timeout_ms / 1000)
            return False
        return not self._commits.has_failed


class _Commits:
    """One commit at a time, in the client's thread. What was told last counts."""

    def __init__(self, client: DriverClient, group: str, lineage: str) -> None:
        self._driver = client.cluster.network.driver
        self._coordinator = Coordinator(client.cluster, group)
        self._lineage = lineage
        self._wanted: Offset | None = None
        self._done: Mapping[TopicPartition, int] = {}
        self._strangers: set[str] = set()
        self._failed_ms: float | None = None
        self._complaint = ""
        self.flow: Flow[None] | None = None

    @property
    def has_failed(self) -> bool:
        return self._failed_ms is not None

    @property
    def is_due(self) -> bool:
        """The last one failed, and may be tried again."""
        return self._failed_ms is not None and self._driver.monotonic_ms() - self._failed_ms >= REST_MS

    async def begin(self, offset: Offset) -> None:
        self._wanted = offset
        if self.flow is None or self.flow.done:
            self.flow = Flow(self._follow())
            self.flow.on_done(surface)

    async def _follow(self) -> None:
        while self._wanted is not None:
            offset, self._wanted = self._wanted, None
            try:
                await self._commit(offset)
                self._failed_ms, self._complaint = None, ""
            except ClientError as error:
                self._failed_ms = self._driver.monotonic_ms()
                self._complain(str(error))

    def _complain(self, why: str) -> None:
        """Once, as long as it stays the same: a topic may be refused for the life of the query."""
        if why != self._complaint:
            LOG.warning("offsets were not committed, the query goes on: %s", why)
        self._complaint = why

    async def _commit(self, offset: Offset) -> None:
        lineage = offset.lineage or self._lineage
        at = {one: each for one, each in offset.at.items() if self._done.get(one) != each}
        committed = await self._coordinator.committed_in_full(at, require_stable=False)
        decision = decide(at, lineage, committed)
        self._mention(decision.strangers, lineage)
        try:
            await self._coordinator.commit(decision.offsets)
        except CommitError as error:
            refused = {one for one, why in error.errors.items() if not isinstance(why, UnknownTopicError)}
            self._done = {one: each for one, each in offset.at.items() if one not in refused}
            if refused:
                raise  # which is tried again
            # Of partitions that are not there any more: to say it once is enough.
            LOG.warning("some offsets were not committed to group %r: %s", self._coordinator.group, error)
        else:
            self._done = dict(offset.at)

    def _mention(self, strangers: frozenset[str], lineage: str) -> None:
        for stranger in sorted(strangers - self._strangers):
            LOG.warning(
                "group %r has offsets of another query: this one's lineage is %s, that one's %s. If both run, they "
                "overwrite each other's offsets: give each a group of its own",
                self._coordinator.group,
                lineage,
                stranger,
            )
        self._strangers |= strangers


def commit_finished(options: SourceOptions, end: Mapping[str, Any]) -> bool:
    """Commit the end of a batch that is finished, for whoever hears of it outside the query. Whether that was done."""
    offset = Offset.parse(end)
    if not options.commits or options.group is None or offset.is_initial or offset.lineage is None:
        return False
    client = DriverClient(options.client.settings)
    try:
        follower = Follower(client, options.group, offset.lineage)
        follower.finished(offset)
        return follower.settle()
    finally:
        client.close()


def _is_unknown(error: ClientError) -> bool:
    """Nobody has used the group yet."""
    return isinstance(error, BrokerError) and error.code == ErrorCode.GROUP_ID_NOT_FOUND


def _members(group: DescribedGroup) -> str:
    names = [f"{one.client_id} at {one.host}" for one in group.members[:_SHOWN_MAX]]
    more = f" and {len(group.members) - _SHOWN_MAX} more" if len(group.members) > _SHOWN_MAX else ""
    return (
        f"group {group.group!r} has members ({', '.join(names)}{more}), which commit to it as well: stop them, or give "
        "the query a group of its own"
    )
