"""Hostile batches through the whole reader, in a process whose kernels are compiled with bounds checks.

python -m tests.fuzz.checked_reader SEED COUNT, with NUMBA_BOUNDSCHECK=1 and a cache of its own. The reader's own flow
fetches from a broker that serves them beside a good partition. Whatever comes: an error of the client that says where,
every row of the good partition once and in order, and an end.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

from numba.core import config
from tests.fuzz import hostile_batches
from tests.reader.logs import StagedLog
from tests.reader.staged import Stage
from tests.unit.client.fetched import RandomLog

from lowwater.client.errors import ClientError
from lowwater.client.reading import Reading
from lowwater.types import TopicPartition
from lowwater.wire.records import BatchHeader, seal, set_position

GOOD, BAD, WORSE = (TopicPartition("cars", number) for number in range(3))
TURNS_MAX = 1000
PAUSE_MS = 5_000
CHANGES = (0, 1, 0x7E, 0x7F, 0x80, 0xFF)


def good_log(chance: random.Random) -> StagedLog:
    log = StagedLog(GOOD)
    log.write([chance.randrange(1000) for _ in range(chance.randrange(30))])
    return log


def bad_log(one: TopicPartition, chance: random.Random) -> StagedLog:
    """Good batches, then some that are not, then good ones again."""
    log = StagedLog(one)
    parts = [_good(one, chance), _hostile(one, chance), _good(one, chance)]
    for batch in (batch for part in parts for batch in part):
        data = bytearray(batch)
        if len(data) >= 20 and chance.random() < 0.9:
            set_position(data, log.end, 0)
        log.end += _claimed(data)
        log.batches.append((log.end, bytes(data)))
    return log


def _good(one: TopicPartition, chance: random.Random) -> list[bytes]:
    return [bytes(batch) for batch in RandomLog(one, chance).batches]


def _hostile(one: TopicPartition, chance: random.Random) -> list[bytes]:
    if chance.random() < 0.7:
        return [hostile_batches.produced_bytes(chance) for _ in range(chance.randrange(1, 4))]
    return [_changed(bytearray(batch), chance) for batch in RandomLog(one, chance).batches]


def _changed(batch: bytearray, chance: random.Random) -> bytes:
    for _ in range(chance.choice((0, 1, 3))):
        batch[chance.randrange(len(batch))] = chance.choice(CHANGES)
    if chance.random() < 0.8:
        seal(batch)
    return bytes(batch)


def _claimed(data: bytearray) -> int:
    """How many offsets a broker would believe it to have."""
    if len(data) < 61:
        return 1
    return min(max(BatchHeader.parse(data).last_offset_delta, 0), 1 << 40) + 1


def read(chance: random.Random) -> Counter[str]:
    """One reader, from its beginning to its end; the errors that it told."""
    logs = {GOOD: good_log(chance), BAD: bad_log(BAD, chance), WORSE: bad_log(WORSE, chance)}
    stage = Stage(logs)
    reading = stage.open(
        stop="latest",
        order=chance.choice(("timestamp", "partition", None)),
        batch_size=chance.choice((1, 7, 1000)),
        held_bytes_max=chance.choice((1 << 14, 1 << 20, 1 << 27)),
    )
    told: Counter[str] = Counter()
    offsets: list[int] = []
    for _ in range(TURNS_MAX):
        try:
            offsets += _good_offsets(_turn(stage, chance))
        except ClientError as error:
            told[type(error).__name__] += 1
            _go_on(stage, reading, error, chance)
        if reading.is_finished:
            break
    assert reading.is_finished, f"it stands still: {stage.asked()}, {told}"
    assert sorted(offsets) == list(range(logs[GOOD].end)), "rows of a good partition are missing, or came twice"
    stage.close()
    return told


def _turn(stage: Stage, chance: random.Random) -> Any:
    """Some of what is asked for comes, or time passes when nothing is; then one poll."""
    asked = stage.asked()
    if asked:
        stage.fetch({one: chance.randrange(1, 4) for one in asked})
    else:
        stage.driver.time.advance(PAUSE_MS)
    return stage.poll()


def _good_offsets(batch: Any) -> list[int]:
    if batch is None:
        return []
    batch.validate(full=True)
    places = zip(batch.column("partition").to_pylist(), batch.column("offset").to_pylist(), strict=True)
    return [offset for partition, offset in places if partition == GOOD.partition]


def _go_on(stage: Stage, reading: Reading, error: ClientError, chance: random.Random) -> None:
    """Without the partition, as callers may."""
    assert error.topic is not None, f"{error!r} does not say where"
    assert error.partition in (BAD.partition, WORSE.partition), f"{error!r} of a good partition"
    assert str(error)
    stage.run(reading.drop(error.topic, error.partition))


def main(seed: int, count: int) -> None:
    assert config.BOUNDSCHECK == 1, "run this with NUMBA_BOUNDSCHECK=1"
    told: Counter[str] = Counter()
    for one in range(seed, seed + count):
        try:
            told += read(random.Random(one))
        except BaseException:
            print(f"seed {one}", file=sys.stderr)
            raise
    print(f"{count} readers, {dict(told)}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
