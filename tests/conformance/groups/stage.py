"""What one group test plays on: topics, a group and members of its own, gone when it ends."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from tests.conformance.asking import batch_of, produce
from tests.conformance.creating import create_topic, wait_for_leaders
from tests.conformance.groups.kinds import Kind
from tests.conformance.groups.member import TIMEOUT_S, Host, Joining, Member, Place, within
from tests.conformance.groups.offsets_topic import generations
from tests.conformance.groups.raw_member import RawMember
from tests.conformance.raw import Wire
from tests.conformance.under_test import UnderTest

from lowwater.errors import ErrorCode
from lowwater.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from lowwater.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from lowwater.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from lowwater.wire.messages.describe_groups import DescribeGroupsRequest
from lowwater.wire.messages.find_coordinator import FindCoordinatorRequest
from lowwater.wire.messages.list_groups import ListGroupsRequest
from lowwater.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from lowwater.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

_numbers = itertools.count(1)
ASKING_AGAIN_S = 0.02
# Apache Kafka answers so for a while after a restart.
NOT_YET_LED = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}


class SharedHosts:
    """Processes that run members of many tests: a JVM is too dear to start for each."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._starting = threading.Lock()

    def of(self, kind: Kind) -> Host:
        key = " ".join(kind.command())
        with self._starting:
            if key not in self._hosts:
                self._hosts[key] = Host(kind.command(), kind.environment(), is_shared=True).start()
            return self._hosts[key]

    def close(self) -> None:
        for host in self._hosts.values():
            host.kill()


class Stage:
    """Members are told apart by their names, which are their client ids too."""

    def __init__(self, broker: UnderTest, shared: SharedHosts) -> None:
        number = next(_numbers)
        self.broker = broker
        self.group = f"group-{number}"
        self.news = threading.Condition()
        self.members: list[Member] = []
        self._number = number
        self._topics = itertools.count(1)
        self._shared = shared
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *exc: object) -> None:
        for member in self.members:
            self._end(member)
        self._stack.close()

    def _end(self, member: Member) -> None:
        if not member.host.is_shared:
            member.host.kill()
        elif not member.ended:
            with contextlib.suppress(Exception):
                member.close()

    # ---- topics

    def topic(self, partitions: int = 4, *, name: str | None = None, **config: str) -> str:
        chosen = name or f"stage-{self._number}-{next(self._topics)}"
        create_topic(self.broker.address, chosen, partitions=partitions, **config)
        return chosen

    def fill(self, topic: str, partitions: int, each: int) -> None:
        """`each` records more to every one of the partitions."""
        with Wire(self.broker.address) as wire:
            for partition in range(partitions):
                records = batch_of(*[b"value"] * each)
                while (code := produce(wire, topic, records, partition=partition).error_code) in NOT_YET_LED:
                    pass
                assert code == ErrorCode.NONE

    def grow(self, topic: str, partitions: int) -> None:
        wanted = CreatePartitionsTopic(name=topic, count=partitions, assignments=None)
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=10_000)).results
            assert answer.error_code == 0, answer
            wait_for_leaders(wire, topic, partitions)

    # ---- members

    def member(self, kind: Kind, name: str = "", *, alone: bool = False, **how: Any) -> Member:
        """A member that has begun to join; `alone`: in a process that may be killed."""
        if kind.protocol == "consumer":
            how.setdefault("assignor", None)
        member = self.idle_member(kind, name, alone=alone)
        member.join(self.broker.bootstrap, kind.protocol, Joining(group=how.pop("group", self.group), **how))
        return member

    def idle_member(self, kind: Kind, name: str = "", *, alone: bool = False) -> Member:
        """A member whose process runs and which has not joined."""
        shares = kind.shares_a_process and not alone
        host = self._shared.of(kind) if shares else Host(kind.command(), kind.environment())
        label = f"{kind.name}-{self._number}-{name or len(self.members) + 1}-{next(self._topics)}"
        member = Member(label, self.news, host)
        host.members[label] = member
        if not shares:
            host.start()
        self.members.append(member)
        return member

    def raw_member(self, topics: Iterable[str], **how: Any) -> RawMember:
        member = RawMember(self.broker.address, how.pop("group", self.group), topics, **how)
        self._stack.callback(member.close)
        return member

    # ---- waiting

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until members' events make `condition` true."""
        if not within(self.news, condition, timeout_s):
            stories = "\n".join(member.story() for member in self.members)
            raise AssertionError(f"not within {timeout_s} s: {what}\n{stories}")

    def until_shared(self, topic: str, partitions: int, *members: Member, timeout_s: float = TIMEOUT_S) -> None:
        """Wait until these members own all partitions of the topic, each once, evenly."""
        places = {(topic, index) for index in range(partitions)}
        self.until(lambda: shared_evenly(places, members), f"{topic} shared by {len(members)}", timeout_s)

    def until_read(self, topic: str, partitions: int, offset: int) -> None:
        """Wait until somebody has read up to `offset` (exclusive) in every partition."""

        def all_read() -> bool:
            return all(self.read_up_to((topic, index)) >= offset for index in range(partitions))

        self.until(all_read, f"{topic} read up to {offset}")

    def read_up_to(self, place: Place) -> int:
        return max((member.read[place][-1] + 1 for member in self.members if member.read[place]), default=0)

    def pass_ms(self, ms: int) -> None:
        """Let members live for a while in which something must not happen."""
        within(self.news, lambda: False, ms / 1000)

    # ---- asking the coordinator

    def describe(self, group: str | None = None) -> Any:
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(DescribeGroupsRequest(groups=[group or self.group])).groups
            return answer

    def state(self, group: str | None = None) -> str:
        """As ListGroups tells it, of either protocol."""
        with Wire(self.broker.address) as wire:
            listed = wire.ask(ListGroupsRequest()).groups
        return next((each.group_state for each in listed if each.group_id == (group or self.group)), "")

    def until_stable(self) -> None:
        self.until_state("Stable")

    def generation(self, kind: Kind) -> int:
        """Of a classic group as its log has it, of a consumer group as it describes itself."""
        if kind.protocol == "consumer":
            with Wire(self.broker.address) as wire:
                [answer] = wire.ask(ConsumerGroupDescribeRequest(group_ids=[self.group])).groups
            return int(answer.group_epoch)
        return generations(self.broker.address, self.group)[-1]

    def member_count(self, kind: Kind) -> int:
        if kind.protocol == "consumer":
            with Wire(self.broker.address) as wire:
                [answer] = wire.ask(ConsumerGroupDescribeRequest(group_ids=[self.group])).groups
            return len(answer.members)
        return len(self.describe().members)

    def until_state(self, state: str) -> None:
        eventually(lambda: self.state() == state, state)

    def committed(self, topic: str, partition: int = 0, *, group: str | None = None) -> int:
        """-1: nothing."""
        place = OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
        wish = OffsetFetchRequestGroup(group_id=group or self.group, topics=[place])
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(OffsetFetchRequest(groups=[wish]), 9).groups
        assert answer.error_code == 0, answer
        return int(answer.topics[0].partitions[0].committed_offset)

    def commit(self, topic: str, partition: int, offset: int, *, group: str | None = None) -> None:
        """As an admin does it: for a group without members."""
        assert self._commit(topic, partition, offset, group or self.group) == ErrorCode.NONE

    def commit_refused(self, topic: str, partition: int, offset: int, *, expected: ErrorCode) -> None:
        assert self._commit(topic, partition, offset, self.group) == expected

    def _commit(self, topic: str, partition: int, offset: int, group: str) -> int:
        place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        wanted = OffsetCommitRequestTopic(name=topic, partitions=[place])
        request = OffsetCommitRequest(group_id=group, topics=[wanted])
        with Wire(self.broker.address) as wire:
            return int(wire.ask(request, 9).topics[0].partitions[0].error_code)

    def delete_records(self, topic: str, partition: int, *, before: int) -> None:
        place = DeleteRecordsPartition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=10_000)
        with Wire(self.broker.address) as wire:
            [answer] = wire.ask(request).topics
        assert answer.partitions[0].error_code == 0, answer

    def until_with(self, again: Callable[[], None], condition: Callable[[], bool], what: str) -> None:
        """Do something over and over until it has shown."""
        deadline = time.monotonic() + TIMEOUT_S
        while not within(self.news, condition, ASKING_AGAIN_S):
            assert time.monotonic() < deadline, what
            again()

    def until_committed(self, topic: str, partition: int, offset: int) -> None:
        eventually(lambda: self.committed(topic, partition) == offset, f"{topic}[{partition}] committed at {offset}")


def wait_for_coordinator(address: tuple[str, int]) -> None:
    """Until groups can be used; Apache Kafka creates the internal topic at the first question for a coordinator."""
    names = [f"any-{number}" for number in range(20)]
    wishes = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]

    def ready() -> bool:
        with Wire(address) as wire:
            wire.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=names))
            answer = wire.ask(OffsetFetchRequest(groups=wishes), 9)
        return all(each.error_code == ErrorCode.NONE for each in answer.groups)

    eventually(ready, "the coordinator is ready")


def shared_evenly(places: set[Place], members: Iterable[Member]) -> bool:
    """Each place once, nobody with more than one more than another."""
    owned = [member.owned & places for member in members]
    sizes = [len(each) for each in owned]
    return set().union(*owned) == places and sum(sizes) == len(places) and max(sizes) - min(sizes) <= 1


def eventually(holds: Callable[[], bool], what: str, timeout_s: float = TIMEOUT_S) -> None:
    """Ask the broker until it says so."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        pause.wait(ASKING_AGAIN_S)
