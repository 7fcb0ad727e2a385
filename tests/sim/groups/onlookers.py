"""Clients that are members of no group: programs that commit by themselves, and operators."""

from __future__ import annotations

from tests.sim.groups.client import FETCH_VERSION, Shore, SimClient
from tests.sim.groups.network import Exchange
from tests.sim.groups.transactions import REQUESTS, Transactions

from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from lowwater.wire.messages.delete_groups import DeleteGroupsRequest
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest
from lowwater.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

COMMIT_MS = 2_500
LOOK_MS = 1_700
ACT_MS = 6_000
BY_ID_VERSION = 10
IN_TRANSACTION = 0.4


class SimpleCommitter(SimClient):
    """Commits for a group without members, and for one that may have some: there it is refused."""

    def __init__(self, name: str, group: str, shore: Shore, others: list[str]) -> None:
        super().__init__(name, group, shore)
        self._groups = [group, group, *others]
        self._transactions = Transactions(self)

    def start(self) -> None:
        super().start()
        self._transactions.forget()
        self.after(self.shore.draw.random() * COMMIT_MS, self._go_on)

    def _go_on(self) -> None:
        self.after(COMMIT_MS, self._go_on)
        self.group = self.shore.draw.choice(self._groups)
        places = self.all_places()
        if not places:
            return
        chosen = self.shore.draw.sample(places, min(len(places), self.shore.draw.randint(1, 3)))
        if self.shore.draw.random() < IN_TRANSACTION:
            self._transactions.go_on(self.group, chosen, {}, self.shore.draw.randint(0, 5))
        else:
            self.post(self.commit_request(chosen), self.shore.draw.randint(2, 10))

    def answered(self, exchange: Exchange) -> None:
        """Whatever comes: the judge has seen it."""
        if isinstance(exchange.request, REQUESTS):
            self._transactions.answered(exchange)

    def broken(self, exchange: Exchange) -> None:
        self._transactions.broken(exchange)


class Reader(SimClient):
    """Looks at committed offsets of all groups, again and again."""

    def __init__(self, name: str, groups: list[str], shore: Shore) -> None:
        super().__init__(name, groups[0], shore)
        self._groups = groups

    def start(self) -> None:
        super().start()
        self.after(self.shore.draw.random() * LOOK_MS, self._go_on)

    def _go_on(self) -> None:
        self.after(LOOK_MS, self._go_on)
        places = self.all_places()
        version = self.shore.draw.choice((FETCH_VERSION, BY_ID_VERSION)) if places else FETCH_VERSION
        self.post(self.fetch_request(places or None, self.shore.draw.choice(self._groups)), version)

    def answered(self, exchange: Exchange) -> None:
        """The judge has seen it."""


class Operator(SimClient):
    """Describes, lists, deletes groups and offsets, removes static members."""

    def __init__(self, name: str, groups: list[str], instances: list[tuple[str, str]], shore: Shore) -> None:
        super().__init__(name, groups[0], shore)
        self._groups = groups
        self._instances = instances

    def start(self) -> None:
        super().start()
        self.after(self.shore.draw.random() * ACT_MS, self._go_on)

    def _go_on(self) -> None:
        self.after(ACT_MS, self._go_on)
        actions = (self._describe, self._describe, self._list, self._delete_group, self._delete_offsets, self._evict)
        self.shore.draw.choice(actions)(self.shore.draw.choice(self._groups))

    def _describe(self, group: str) -> None:
        self.post(DescribeGroupsRequest(groups=[group]), 6)
        self.post(ConsumerGroupDescribeRequest(group_ids=[group]), 1)

    def _list(self, group: str) -> None:
        self.post(ListGroupsRequest(), 5)

    def _delete_group(self, group: str) -> None:
        self.post(DeleteGroupsRequest(groups_names=[group]), 2)

    def _delete_offsets(self, group: str) -> None:
        places = self.all_places()
        if places:
            topic, partition = self.shore.draw.choice(places)
            wanted = [OffsetDeleteRequestPartition(partition_index=partition)]
            topics = [OffsetDeleteRequestTopic(name=topic, partitions=wanted)]
            self.post(OffsetDeleteRequest(group_id=group, topics=topics), 0)

    def _evict(self, group: str) -> None:
        """Remove a static member by the name of its instance alone."""
        if self._instances and self.shore.draw.random() < 0.5:
            owner, instance = self.shore.draw.choice(self._instances)
            identity = MemberIdentity(member_id="", group_instance_id=instance)
            self.post(LeaveGroupRequest(group_id=owner, members=[identity]), 5)

    def answered(self, exchange: Exchange) -> None:
        """The judge has seen it."""
