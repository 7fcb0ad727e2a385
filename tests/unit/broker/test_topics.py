"""The registry of topics and settings: what is answered holds, also after a crash."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.broker.changes import Decision
from lowwater.broker.metadata_log import MetadataLog
from lowwater.broker.metadata_records import (
    BrokerConfigured,
    ClusterNamed,
    FeatureLevelSet,
    PartitionsAdded,
    ProducerIdsReserved,
    QuotaSet,
    Record,
    TopicConfigured,
    TopicCreated,
    TopicDeleted,
    decode,
    encode,
)
from lowwater.broker.topics import PRODUCER_ID_BLOCK, REWRITE_RECORDS_MIN, Topics
from lowwater.config import BrokerConfig
from lowwater.errors import ApiError, ConfigError, ErrorCode, StorageError
from lowwater.pending import run
from lowwater.ports import Disk
from lowwater.testing.faults_disk import Fault, FaultKind, FaultyDisk
from lowwater.testing.simdisk import SimDisk, SimIds

ID, OTHER_ID = b"\x01" * 16, b"\x02" * 16
LOG = "/data/metadata/log"


class Inline:
    """Offload without threads; what is held runs on `release`."""

    def __init__(self) -> None:
        self.hold = False
        self._held: list[Any] = []

    def submit(self, work: Any, done: Any) -> None:
        self._held.append((work, done))
        if not self.hold:
            self.release()

    submit_read = submit

    def release(self) -> None:
        while self._held:
            work, done = self._held.pop(0)
            try:
                work()
            except Exception as error:
                done(None, error)
            else:
                done(None, None)


def no_partition(*_: object) -> Any:
    raise AssertionError("no partition is opened here")


def config(**settings: str) -> BrokerConfig:
    return BrokerConfig.load(None, {"node.id": "1"} | {name.replace("_", "."): text for name, text in settings.items()})


def opened(disk: Disk, offload: Inline | None = None, ids_seed: int = 0, **settings: str) -> Topics:
    if not disk.exists("/data"):
        disk.mkdir("/data")
        disk.sync_dir("/")
    sim_disk = disk if isinstance(disk, SimDisk) else SimDisk()
    ids = SimIds(sim_disk, ids_seed)
    return Topics.open(disk, "/data", config(**settings), ids, offload or Inline(), no_partition)


def commit(topics: Topics, *records: Record) -> None:
    topics.change(lambda: Decision(list(records), None)).result()


def created(name: str, topic_id: bytes = ID, partitions: int = 1, boot: int = 1, **configs: str) -> TopicCreated:
    settings = {key.replace("_", "."): value for key, value in configs.items()}
    return TopicCreated(name, topic_id, partitions, boot, settings)


def facts(topics: Topics) -> dict[str, Any]:
    """Everything durable that can be read."""
    return {
        "topics": {topic.name: (topic.id, tuple(topic.growth()), dict(topic.config.overrides)) for topic in topics},
        "altered": {node: dict(topics.altered(node)) for node in ("", "1")},
        "quotas": dict(topics.quotas),
        "features": dict(topics.features.in_force()),
        "cluster": topics.cluster_id,
    }


# ---- records


@pytest.mark.parametrize(
    "record",
    [
        ClusterNamed("abc", 7),
        created("a", retention_ms="5"),
        PartitionsAdded(ID, 4, 2),
        TopicConfigured(ID, {"retention.ms": "ü"}),
        TopicDeleted(ID),
        BrokerConfigured("", {"log.retention.ms": "5"}),
        QuotaSet((("client-id", None), ("user", "bob")), {"producer_byte_rate": 0.1}),
        FeatureLevelSet("transaction.version", 1),
        ProducerIdsReserved(2000),
    ],
)
def test_a_record_reads_back_as_it_was_written(record: Record) -> None:
    assert decode(encode(record)) == record


@pytest.mark.parametrize(
    "payload", [b"{}", b"no json", b"[]", b'{"kind":"future"}', b'{"kind":"topic-deleted","topic_id":"00","more":1}']
)
def test_a_record_of_a_newer_version_is_refused_and_not_guessed_at(payload: bytes) -> None:
    with pytest.raises(StorageError, match="not readable by this version"):
        decode(payload)


# ---- life and recovery


def test_everything_is_there_again_after_a_restart() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, created("a", ID, 2, boot=1, retention_ms="5"), created("b", OTHER_ID))
    commit(topics, PartitionsAdded(ID, 5, 3))
    commit(topics, TopicConfigured(OTHER_ID, {"cleanup.policy": "compact"}))
    commit(topics, BrokerConfigured("", {"message.max.bytes": "77"}))
    commit(topics, QuotaSet((("user", "bob"),), {"producer_byte_rate": 5.0}))
    before = facts(topics)
    assert before["topics"]["a"] == (ID, ((2, 1), (5, 3)), {"retention.ms": "5"})
    again = opened(disk)
    assert facts(again) == before
    assert again.version == topics.version
    assert again.config.int("message.max.bytes") == 77


def test_a_partition_added_later_counts_its_boots_from_then_on() -> None:
    topics = opened(SimDisk())
    commit(topics, created("a", ID, 2, boot=1))
    commit(topics, PartitionsAdded(ID, 3, 4))
    commit(topics, PartitionsAdded(ID, 5, 6))
    topic = topics.get("a")
    assert topic is not None
    assert [topic.created_boot(index) for index in range(5)] == [1, 1, 4, 6, 6]


def test_a_topic_is_found_by_name_and_by_id_until_it_is_deleted() -> None:
    topics = opened(SimDisk())
    commit(topics, created("a"))
    assert topics.get("a") is topics.by_id(ID)
    gone: list[str] = []
    topics.on_deleted.append(lambda topic: gone.append(topic.name))
    commit(topics, TopicDeleted(ID))
    assert (topics.get("a"), topics.by_id(ID), topics.names(), gone) == (None, None, [], ["a"])


def test_only_files_of_topics_that_were_deleted_count_as_leftovers() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, created("a"), created("b", OTHER_ID))
    commit(topics, TopicDeleted(ID))
    for registry in (topics, opened(disk)):
        assert registry.is_deleted(ID)
        assert not registry.is_deleted(OTHER_ID)
        assert not registry.is_deleted(b"\x09" * 16)


def test_topics_without_settings_of_their_own_share_one_configuration() -> None:
    topics = opened(SimDisk())
    commit(topics, created("a"), created("b", OTHER_ID))
    a, b = topics
    assert a.config is b.config
    assert a.log_config is b.log_config


def test_altering_the_broker_alters_its_topics_but_not_what_they_set_themselves() -> None:
    topics = opened(SimDisk())
    commit(topics, created("a"), created("b", OTHER_ID, segment_bytes="65536"))
    commit(topics, BrokerConfigured("", {"log.segment.bytes": "1000", "log.retention.ms": "9"}))
    commit(topics, BrokerConfigured("1", {"log.retention.ms": "7"}))
    a, b = topics
    assert (a.log_config.segment_bytes, b.log_config.segment_bytes) == (1000, 65_536)
    assert (a.log_config.retention_ms, b.log_config.retention_ms) == (7, 7)
    commit(topics, BrokerConfigured("1", {}))
    assert a.log_config.retention_ms == 9


def test_settings_of_another_node_do_not_count_here() -> None:
    topics = opened(SimDisk())
    commit(topics, BrokerConfigured("2", {"message.max.bytes": "5"}))
    assert topics.config.int("message.max.bytes") == 1_048_588


# ---- the cluster


def test_a_cluster_keeps_its_id() -> None:
    disk = SimDisk()
    first = opened(disk).cluster_id
    assert len(first) == 22
    assert opened(disk, ids_seed=9).cluster_id == first


def test_a_cluster_id_can_be_chosen_at_the_first_start_only() -> None:
    disk = SimDisk()
    assert opened(disk, cluster_id="mine").cluster_id == "mine"
    assert opened(disk, cluster_id="mine").cluster_id == "mine"
    with pytest.raises(ConfigError, match="belongs to cluster 'mine'"):
        opened(disk, cluster_id="yours")


# ---- changes, one after the other


def test_a_change_is_seen_only_when_it_is_durable() -> None:
    offload = Inline()
    topics = opened(SimDisk(), offload)
    offload.hold = True
    pending = topics.change(lambda: Decision([created("a")], "done"))
    assert (pending.done, topics.get("a")) == (False, None)
    offload.release()
    assert pending.result() == "done"
    assert topics.get("a") is not None


def test_a_change_is_decided_on_what_those_before_it_left() -> None:
    offload = Inline()
    topics = opened(SimDisk(), offload)
    offload.hold = True

    def create() -> Decision[str]:
        return Decision([topics.create("a", 1, {}, 1)], "created")

    first, second = topics.change(create), topics.change(create)
    offload.release()
    assert first.result() == "created"
    with pytest.raises(ApiError) as refused:
        second.result()
    assert refused.value.code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_a_change_that_cannot_be_decided_does_not_stop_those_behind_it() -> None:
    offload = Inline()
    topics = opened(SimDisk(), offload)
    offload.hold = True

    def broken() -> Decision[None]:
        raise ZeroDivisionError

    first = topics.change(lambda: Decision([created("a")], None))
    second = topics.change(broken)
    third = topics.change(lambda: Decision([created("b", OTHER_ID)], None))
    offload.release()
    first.result()
    third.result()
    with pytest.raises(ZeroDivisionError):
        second.result()
    assert topics.names() == ["a", "b"]


@pytest.mark.parametrize("kind", [FaultKind.ENOSPC, FaultKind.SHORT_WRITE])
def test_a_full_disk_refuses_a_change_and_the_next_one_may_pass(kind: FaultKind) -> None:
    opened(inner := SimDisk())
    disk = FaultyDisk(inner, Fault(kind, 1, path_contains="metadata"))
    topics = opened(disk)
    with pytest.raises(ApiError) as refused:
        commit(topics, created("a"))
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.heal()
    commit(topics, created("b"))
    assert topics.names() == ["b"]
    assert opened(disk).names() == ["b"]


@pytest.mark.parametrize("kind", [FaultKind.SYNC, FaultKind.EIO])
def test_after_a_failed_sync_or_write_nothing_more_is_changed(kind: FaultKind) -> None:
    opened(inner := SimDisk())
    disk = FaultyDisk(inner, Fault(kind, 1, path_contains="metadata"))
    topics = opened(disk)
    for _ in range(2):
        with pytest.raises(ApiError) as refused:
            commit(topics, created("a"))
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.heal()
    assert topics.names() == []


# ---- producer ids


def test_producer_ids_count_up_and_one_record_reserves_many() -> None:
    topics = opened(SimDisk())
    version = topics.version
    ids = [run(topics.new_producer_id()).result() for _ in range(PRODUCER_ID_BLOCK + 1)]
    assert ids == list(range(PRODUCER_ID_BLOCK + 1))
    assert topics.version == version + 2


def test_producer_ids_are_never_given_twice_not_even_after_a_power_cut() -> None:
    disk = SimDisk()
    topics = opened(disk)
    given = {run(topics.new_producer_id()).result() for _ in range(3)}
    for state in disk.crash_states():
        again = opened(disk.after(state))
        assert run(again.new_producer_id()).result() not in given


def test_many_who_wait_for_a_producer_id_share_one_reservation() -> None:
    offload = Inline()
    topics = opened(SimDisk(), offload)
    offload.hold = True
    version = topics.version
    waiting = [run(topics.new_producer_id()) for _ in range(5)]
    assert not any(pending.done for pending in waiting)
    offload.release()
    assert [pending.result() for pending in waiting] == [0, 1, 2, 3, 4]
    assert topics.version == version + 1


# ---- crashes


SCRIPT: tuple[Record, ...] = (
    created("a", ID, 2, retention_ms="5"),
    created("b", OTHER_ID),
    QuotaSet((("user", "bob"),), {"producer_byte_rate": 5.0}),
    FeatureLevelSet("transaction.version", 1),
    TopicConfigured(ID, {}),
    TopicConfigured(ID, {"leader.replication.throttled.replicas": ",".join(["0:1"] * 700)}),  # torn at some sector
    PartitionsAdded(ID, 3, 2),
    BrokerConfigured("", {"message.max.bytes": "77"}),
    TopicDeleted(OTHER_ID),
)


def test_whatever_a_power_cut_leaves_an_answered_change_holds() -> None:
    """At every operation of the disk, in every state a power cut can leave there."""
    disk = SimDisk()
    topics = opened(disk)
    answered = [(disk.operations, facts(topics))]
    for record in SCRIPT:
        commit(topics, record)
        answered.append((disk.operations, facts(topics)))
    states = 0
    for at in range(answered[0][0], disk.operations + 1):
        newest = max(index for index, (when, _) in enumerate(answered) if when <= at)
        # The one that was under way is there as a whole, or not at all.
        legal = [known for _, known in answered[newest : newest + 2]]
        for state in disk.crash_states(at, subsets=16):
            states += 1
            assert facts(opened(disk.after(state))) in legal, state
    assert states > 30


def test_a_start_that_was_killed_early_leaves_nothing_that_a_power_cut_can_take_back_later() -> None:
    disk = SimDisk()
    disk.mkdir("/data")
    disk.sync_dir("/")
    disk.mkdir("/data/metadata")  # that was as far as the first start came
    commit(opened(disk), created("a"))
    for state in disk.crash_states():
        assert opened(disk.after(state)).names() == ["a"]


def test_damage_in_the_middle_loses_one_record_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, created("a", ID))
    damaged_at = len(disk.read(LOG)) + 20
    commit(topics, created("b", OTHER_ID))
    commit(topics, TopicConfigured(ID, {"retention.ms": "5"}), PartitionsAdded(OTHER_ID, 3, 1))
    disk.open(LOG).pwrite(b"\xff", damaged_at)
    again = opened(disk)
    assert again.names() == ["a"]
    assert again.get("a").config.overrides == {"retention.ms": "5"}  # type: ignore[union-attr]
    assert not again.is_deleted(OTHER_ID)
    assert "was damaged" in caplog.text
    caplog.clear()
    assert facts(opened(disk)) == facts(again)
    assert "was damaged" not in caplog.text


def test_a_topic_that_took_the_name_of_one_whose_deletion_is_lost_replaces_it() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, created("a", ID))
    damaged_at = len(disk.read(LOG)) + 20
    commit(topics, TopicDeleted(ID))
    commit(topics, created("a", OTHER_ID))
    disk.open(LOG).pwrite(b"\xff", damaged_at)
    again = opened(disk)
    assert [topic.id for topic in again] == [OTHER_ID]
    assert again.is_deleted(ID)


# ---- a long log


def test_a_log_of_mostly_history_is_rewritten_without_losing_anything() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, created("a", ID, 2, boot=1, retention_ms="5"), created("gone", OTHER_ID))
    commit(topics, PartitionsAdded(ID, 5, 3), TopicDeleted(OTHER_ID))
    commit(topics, QuotaSet((("user", None),), {"request_percentage": 1.5}))
    commit(topics, FeatureLevelSet("transaction.version", 1))
    run(topics.new_producer_id()).result()
    assert not topics.rewrite_if_long()
    commit(topics, *[BrokerConfigured("", {"message.max.bytes": str(n)}) for n in range(REWRITE_RECORDS_MIN)])
    before, size = facts(topics), len(disk.read(LOG))
    again = opened(disk)
    assert again.rewrite_if_long()
    assert len(disk.read(LOG)) < size / 20
    assert not again.rewrite_if_long()
    third = opened(disk)
    assert facts(third) == facts(again) == before
    assert third.version == again.version == topics.version
    assert run(third.new_producer_id()).result() == PRODUCER_ID_BLOCK
    assert not third.is_deleted(OTHER_ID)
    commit(third, created("after", b"\x05" * 16))
    assert opened(disk).names() == ["a", "after"]


def test_a_power_cut_during_a_rewrite_leaves_the_old_or_the_new_log() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(
        topics, created("a", ID), *[PartitionsAdded(ID, n + 2, 1) for n in range(3)], *[TopicConfigured(ID, {})] * 1100
    )
    again = opened(disk)
    begin = disk.operations
    assert again.rewrite_if_long()
    for at in range(begin, disk.operations + 1):
        for state in disk.crash_states(at, subsets=8):
            assert facts(opened(disk.after(state))) == facts(topics)


def test_a_log_that_is_all_needed_is_left_alone() -> None:
    disk = SimDisk()
    topics = opened(disk)
    commit(topics, *[created(f"t{n}", n.to_bytes(16, "big")) for n in range(1, REWRITE_RECORDS_MIN + 200)])
    assert not opened(disk).rewrite_if_long()


# ---- names


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a.b", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("a_b", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_a_new_topic_needs_a_legal_name_of_its_own(name: str, code: ErrorCode) -> None:
    topics = opened(SimDisk())
    commit(topics, created("a.b"))
    with pytest.raises(ApiError) as refused:
        topics.check_name(name)
    assert refused.value.code == code


def test_a_name_is_free_again_after_deletion() -> None:
    topics = opened(SimDisk())
    commit(topics, created("a.b"))
    commit(topics, TopicDeleted(ID))
    topics.check_name("a_b")
    topics.check_name("a.b")


def test_a_metadata_log_is_closed_with_its_registry() -> None:
    disk = SimDisk()
    topics = opened(disk)
    assert disk.open_files == 1
    topics.close()
    assert disk.open_files == 0
    assert MetadataLog.open(disk, "/data")[1] == [ClusterNamed(topics.cluster_id)]
