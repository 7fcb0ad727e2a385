"""A fetch session (KIP-227): the broker remembers what it is asked for, and is told only what is different."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from lowwater.client.fetching.partition import PartitionFetch
from lowwater.client.fetching.stored import NO_EPOCH
from lowwater.types import TopicPartition
from lowwater.wire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchTopic, ForgottenTopic
from lowwater.wire.schema import ZERO_UUID

NO_SESSION = 0
FIRST_EPOCH, FINAL_EPOCH = 0, -1
_EPOCH_MAX = 0x7FFFFFFF


class Change(NamedTuple):
    """What one request tells the broker. With FIRST_EPOCH it is everything."""

    session_id: int
    epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSession:
    """What we want of a broker, and what it knows of that. A broker that keeps no session is told everything each time.

    Where it keeps one, partitions about which there is nothing to say cost nothing.
    """

    def __init__(self, epoch_of: Callable[[TopicPartition], int], partition_bytes: Callable[[int], int]) -> None:
        self._epoch_of = epoch_of
        self._partition_bytes = partition_bytes
        self._wanted: dict[TopicPartition, PartitionFetch] = {}
        self._known: dict[TopicPartition, PartitionFetch] = {}  # by the broker, once the last request has come there
        self._changed: dict[TopicPartition, PartitionFetch] = {}
        self._dropped: dict[TopicPartition, bytes] = {}  # with the topic's id as the broker knows it
        self._names: dict[bytes, str] = {}
        self.id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self.has_ids = True  # whether every topic can be named by its id

    # ---- what we want

    @property
    def wanted(self) -> Collection[PartitionFetch]:
        return self._wanted.values()

    def wants(self, one: TopicPartition) -> bool:
        return one in self._wanted

    def want(self, partition: PartitionFetch) -> None:
        """Ask for it from where it stands now. It goes to the end of the queue: each has its turn to come first."""
        one = partition.one
        self.has_ids = self.has_ids and partition.topic_id != ZERO_UUID
        self._wanted.pop(one, None)
        self._wanted[one] = self._changed[one] = partition
        known = self._known.get(one)
        if known is not None and known.topic_id != partition.topic_id:
            self._dropped[one] = known.topic_id
        else:
            self._dropped.pop(one, None)
            if known is not None and not partition.is_known:
                partition.has_bounds(known)  # the broker has told them, and does not so again

    def drop(self, one: TopicPartition) -> None:
        if self._wanted.pop(one, None) is None:
            return
        self._changed.pop(one, None)
        known = self._known.get(one)
        if known is not None:
            self._dropped[one] = known.topic_id

    def tell_all(self) -> None:
        """With the next request, as if all of them had changed."""
        self._changed = dict(self._wanted)

    # ---- what the broker is told, and tells

    def next_change(self, sizes: Mapping[TopicPartition, int] | None = None, *, has_epochs: bool = True) -> Change:
        """What to send now; from here on the broker counts as knowing it.

        `sizes`: ask only for these, and for so much of each. `has_epochs`: it can be told the epoch of the batch that
        we read last, and says where its log parts from ours.
        """
        told, dropped = self._changed, self._dropped
        if sizes is not None:
            told = {one: self._wanted[one] for one in sizes}
            dropped.update((one, known.topic_id) for one, known in self._known.items() if one not in sizes)
        if self._epoch == FIRST_EPOCH:
            told, dropped = self._wanted if sizes is None else told, {}
            self._known, self._names = {}, {}
        self._size(told, sizes)
        for one in dropped:
            del self._known[one]
        self._known.update(told)
        change = Change(self.id, self._epoch, self._described(told.values(), has_epochs), _forgotten(dropped))
        self._changed, self._dropped = {}, {}
        return change

    def _size(self, told: Mapping[TopicPartition, PartitionFetch], sizes: Mapping[TopicPartition, int] | None) -> None:
        share = self._partition_bytes(max(1, len(self._wanted)))
        for one, partition in told.items():
            partition.asked_bytes = partition.most_bytes(share) if sizes is None else sizes[one]

    def _described(self, partitions: Iterable[PartitionFetch], has_epochs: bool) -> list[FetchTopic]:
        topics: dict[str, FetchTopic] = {}
        for partition in partitions:
            one = partition.one
            topic = topics.get(one.topic)
            if topic is None:
                topic = topics[one.topic] = FetchTopic(topic=one.topic, topic_id=partition.topic_id, partitions=[])
                self._names[partition.topic_id] = one.topic
            topic.partitions.append(
                FetchPartition(
                    partition=one.partition,
                    current_leader_epoch=self._epoch_of(one),
                    fetch_offset=partition.position,
                    last_fetched_epoch=partition.fetched_epoch if has_epochs else NO_EPOCH,
                    partition_max_bytes=partition.asked_bytes,
                )
            )
        return list(topics.values())

    def answered(self, session_id: int) -> None:
        if session_id == NO_SESSION:
            self.id, self._epoch = NO_SESSION, FIRST_EPOCH
        else:
            self.id, self._epoch = session_id, 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def begin_again(self) -> None:
        """What the broker knows is not certain: the next request ends the session, if there is one, and begins anew."""
        self._epoch = FIRST_EPOCH

    def last_change(self) -> Change:
        """Ends the session at the broker."""
        return Change(self.id, FINAL_EPOCH, [], [])

    def name_of(self, topic: FetchableTopicResponse) -> str:
        return topic.topic or self._names.get(topic.topic_id, "")

    @property
    def told(self) -> Collection[PartitionFetch]:
        """All that the broker was asked for."""
        return self._known.values()

    def asked(self, one: TopicPartition) -> PartitionFetch | None:
        """What the broker was asked for, which may not be wanted any more."""
        return self._known.get(one)


def _forgotten(dropped: Mapping[TopicPartition, bytes]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for one, topic_id in dropped.items():
        topic = topics.get((one.topic, topic_id))
        if topic is None:
            topic = topics[one.topic, topic_id] = ForgottenTopic(topic=one.topic, topic_id=topic_id, partitions=[])
        topic.partitions.append(one.partition)
    return list(topics.values())
