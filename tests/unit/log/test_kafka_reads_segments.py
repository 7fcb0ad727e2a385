"""Apache Kafka's own tool judges the files: sealed segments, their indexes, and what compaction made of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from peers import java
from tests.unit.log.support import NOW, read_all

from lowwater.log.compaction import execute
from lowwater.log.config import LogConfig
from lowwater.log.partition_log import PartitionLog
from lowwater.log.store import LogStore
from lowwater.system import SystemDisk, SystemIds
from lowwater.wire.records import TRANSACTIONAL, Record, build_batch

pytestmark = pytest.mark.peer("kafka")

HEADERS = (("h", b"x"), ("n", None))
COMPLAINTS = re.compile(r"isvalid: false|mismatch|not found|out of order|exception|error", re.IGNORECASE)


def dumped(files: list[Path]) -> str:
    names = ",".join(map(str, files))
    tool = java.command(
        "org.apache.kafka.tools.DumpLogSegments", "--files", names, "--deep-iteration", "--print-data-log"
    )
    done = subprocess.run(tool, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def filled(store: LogStore, config: LogConfig) -> PartitionLog:
    log = store.partition("orders", b"1" * 16, 0, config, store.boot_count)
    for number in range(300):
        stamp = NOW + (number * 7919) % 1000
        records = [
            Record(
                place,
                stamp + place,
                b"k%d" % ((3 * number + place) % 70),
                b"v%d" % number * 20,
                (("h", b"x"), ("n", None)),
            )
            for place in range(2)
        ]
        records.append(Record(2, stamp, b"k%d" % (number % 90), None if number % 9 == 0 else b"w"))
        sequence = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 3 * number}
        log.append(memoryview(build_batch(records, codec=number % 5, **sequence)), NOW)
    log.flush()
    return log


def with_transactions(store: LogStore) -> PartitionLog:
    """Some committed, some aborted, of which compaction leaves batches without records."""
    log = store.partition("orders", b"2" * 16, 0, LogConfig(2000, compact=True), store.boot_count)
    for number in range(40):
        producer = {"producer_id": 5 + number % 2, "producer_epoch": 0, "base_sequence": number // 2}
        batch = build_batch([Record(0, NOW, b"k%d" % number, b"v" * 50)], attributes=TRANSACTIONAL, **producer)
        log.append(memoryview(batch), NOW, in_transaction=True)
        if number % 4 > 1:
            log.append_marker(producer["producer_id"], 0, number % 8 > 3, 3, NOW)
    log.flush()
    return log


def test_kafka_dump_log_reads_transactions(tmp_path: Path) -> None:
    store = LogStore.open(SystemDisk(), str(tmp_path / "data"), now_ms=NOW, ids=SystemIds())
    log = with_transactions(store)
    assert log.last_stable == log.log_end
    before = dumped(sorted(Path(log.directory).glob("*.log")))
    assert (before.count("endTxnMarker: COMMIT"), before.count("endTxnMarker: ABORT")) == (10, 10)
    assert before.count("coordinatorEpoch: 3") == 20
    plan = log.plan_compaction(NOW)
    assert plan is not None
    log.finish_compaction(execute(plan))
    told = dumped(sorted(Path(log.directory).glob("*.log")))
    store.close(NOW)
    assert not COMPLAINTS.search(before + told), COMPLAINTS.search(before + told)
    assert len(re.findall("isTransactional: true", told)) > told.count("endTxnMarker") > 0
    assert len(told) < len(before)


@pytest.mark.parametrize("compacted", [False, True])
def test_kafka_dump_log_finds_nothing_wrong(tmp_path: Path, compacted: bool) -> None:
    store = LogStore.open(SystemDisk(), str(tmp_path / "data"), now_ms=NOW, ids=SystemIds())
    log = filled(store, LogConfig(segment_bytes=30_000, compact=compacted, min_cleanable_dirty_ratio=0.0))
    if compacted:
        plan = log.plan_compaction(NOW)
        assert plan is not None
        result = execute(plan)
        assert result.error is None
        log.finish_compaction(result)
    offsets = [record.offset for record in read_all(log)]
    directory = Path(log.directory)
    store.close(NOW)
    files = sorted(path for path in directory.iterdir() if path.suffix in (".log", ".index", ".timeindex"))
    assert len(files) >= 6
    told = dumped(files)
    assert not COMPLAINTS.search(told), COMPLAINTS.search(told)
    assert [int(found) for found in re.findall(r"^\| offset: (\d+)", told, re.MULTILINE)] == offsets
    assert told.count("isvalid: true") == len(re.findall(r"^baseOffset: ", told, re.MULTILINE)) > 50
