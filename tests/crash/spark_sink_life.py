"""A driver of the exactly-once sink as Spark plays it, but without a JVM: batches of some tasks, one after the other.

`python -m tests.crash.spark_sink_life '{…}'` starts it over and over, by lines on its input: each life is a fork, so
that it costs no imports, and dies by kill -9 at a named point, or is stopped there to go on later as a zombie.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructType

import lowwater.client.producing.tables
import lowwater.spark.worker_producer  # noqa: F401
from lowwater.client.blocking import BlockingDriver
from lowwater.client.config import ClientConfig
from lowwater.client.network import Network
from lowwater.client.producing.ending import FEATURE
from lowwater.errors import ErrorCode
from lowwater.spark.exactly_once.brokers import ClusterBrokers
from lowwater.spark.exactly_once.errors import SinkTakenError
from lowwater.spark.exactly_once.ledger import Ledger
from lowwater.spark.exactly_once.state import Fence, SinkState, Transaction
from lowwater.spark.sink import Attempt, Writing, Written
from lowwater.spark.sink_once import LowwaterOnceStreamWriter
from lowwater.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

SCHEMA = StructType().add("value", StringType())
QUERY = "3b1c"
DONE, FAILED, TAKEN = 0, 1, 3
"""Exit codes of a life."""


class Point(StrEnum):
    PLANNED = "planned"
    TASK_ATTEMPT = "task-attempt"
    """Its worker dies when the rows are written; Spark runs the task again."""
    AMONG_TASKS = "among-tasks"
    BEFORE_INTENT = "before-intent"
    IN_INTENT = "in-intent"
    AFTER_INTENT = "after-intent"
    BETWEEN_ENDS = "between-ends"
    BEFORE_DONE = "before-done"
    AFTER_DONE = "after-done"


class Blow(StrEnum):
    KILL = "kill"
    STOP = "stop"
    RAISE = "raise"
    """The call fails, and Spark has the batch aborted."""


class BlowError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Play:
    bootstrap: str
    topic: str
    sink: str
    folder: str
    tasks: int = 3
    rows: int = 4
    settings: dict[str, str] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def options(self) -> dict[str, str]:
        own = {"kafka.bootstrap.servers": self.bootstrap, "topic": self.topic, "sinkId": self.sink}
        return {**own, "exactlyOnce": "true", **(self.settings or {})}

    def rows_of(self, batch: int, task: int) -> list[str]:
        """A batch that is run again has the same rows."""
        return [f"{batch}-{task}-{row}" for row in range(self.rows)]

    @property
    def finished(self) -> int:
        """How many batches Spark's commit log has."""
        return len(list(self.log.iterdir()))

    @property
    def log(self) -> Path:
        """A file for each, by its number."""
        folder = Path(self.folder) / "commits"
        folder.mkdir(exist_ok=True)
        return folder


@dataclass(slots=True)
class Fault:
    point: Point | None
    blow: Blow = Blow.KILL

    def reach(self, point: Point) -> None:
        if point is not self.point:
            return
        self.point = None
        if self.blow is Blow.RAISE:
            raise BlowError(point)
        os.kill(os.getpid(), signal.SIGKILL if self.blow is Blow.KILL else signal.SIGSTOP)


class FaultyLedger(Ledger):
    def __init__(self, sound: Ledger, fault: Fault) -> None:
        super().__init__(sound._cluster, sound._where.topic, sound._sink)
        self._fault = fault

    async def _produce(self, batch: bytearray, per_transaction: bool, left_ms: float) -> None:
        await super()._produce(batch, per_transaction, left_ms)
        if b'"intent"' in batch:
            self._fault.reach(Point.IN_INTENT)


class FaultyBrokers(ClusterBrokers):
    def __init__(self, sound: ClusterBrokers, fault: Fault) -> None:
        self.__dict__.update(sound.__dict__)
        self._fault = fault
        self._ledger = FaultyLedger(sound._ledger, fault)

    def record(self, state: SinkState) -> Fence:
        is_intent = state.intent is not None
        self._fault.reach(Point.BEFORE_INTENT if is_intent else Point.BEFORE_DONE)
        fence = super().record(state)
        self._fault.reach(Point.AFTER_INTENT if is_intent else Point.AFTER_DONE)
        return fence

    def end(self, transactions: Sequence[Transaction], *, commit: bool) -> list[Transaction]:
        lost = super().end(transactions[:1], commit=commit)
        if commit and len(transactions) > 1:
            self._fault.reach(Point.BETWEEN_ENDS)
        return lost + super().end(transactions[1:], commit=commit)


class FaultyWriter(LowwaterOnceStreamWriter):
    fault = Fault(None)

    @contextlib.contextmanager
    def _brokers(self) -> Iterator[ClusterBrokers]:  # type: ignore[override]
        with super()._brokers() as sound:
            yield FaultyBrokers(sound, self.fault)


class PlayedWriter(FaultyWriter):
    """Told which attempt it is; Spark's would ask its task."""

    attempt = Attempt(None, 0, 0)

    def _attempt(self) -> Attempt:
        return self.attempt


class Driver:
    """What Spark does with a sink."""

    def __init__(self, play: Play, fault: Fault) -> None:
        self._play = play
        self._fault = fault
        self._attempts = 0
        self.query = QUERY

    def run(self, batches: int) -> None:
        """So many from where the commit log ends."""
        for batch in range(self._play.finished, self._play.finished + batches):
            self.run_batch(batch)
            (self._play.log / str(batch)).touch()

    def run_batch(self, batch: int) -> None:
        pickled = cloudpickle.dumps(self.writer())
        self._fault.reach(Point.PLANNED)
        messages: list[Any] = []
        for task in range(self._play.tasks):
            messages.append(self._run_task(pickled, batch, task))
            self._fault.reach(Point.AMONG_TASKS)
        try:
            self.writer().commit(messages, batch)
        except BaseException:
            self.writer().abort(messages, batch)
            raise

    def writer(self) -> PlayedWriter:
        writer = PlayedWriter(Writing.plan(self._play.options(), SCHEMA))
        writer.fault = self._fault
        return writer

    def _run_task(self, pickled: bytes, batch: int, task: int) -> Written:
        """The first attempt of the first task is tried in a worker of its own when it is to die."""
        if self._fault.point is Point.TASK_ATTEMPT:
            self._fault.point = None
            self._in_a_worker_that_dies(pickled, batch, task)
        return self.attempt(pickled, batch, task)

    def attempt(self, pickled: bytes, batch: int, task: int) -> Written:
        self._attempts += 1
        writer: PlayedWriter = cloudpickle.loads(pickled)
        # Spark counts attempts by application: two drivers have the same numbers.
        writer.attempt = Attempt(batch, task, 0, self._attempts, self.query)
        rows = pa.record_batch([pa.array(self._play.rows_of(batch, task))], names=["value"])
        return writer.write(iter([rows]))

    def _in_a_worker_that_dies(self, pickled: bytes, batch: int, task: int) -> None:
        self._attempts += 1
        if pid := os.fork():
            os.waitpid(pid, 0)
            return
        self.attempt(pickled, batch, task)
        os.kill(os.getpid(), signal.SIGKILL)


def lower_level(bootstrap: str) -> None:
    """Of transaction.version: from 2 on each transaction has an epoch, at 1 it has not."""
    update = FeatureUpdateKey(feature=FEATURE, max_version_level=1, upgrade_type=3)
    config = ClientConfig({"bootstrap.servers": bootstrap})
    driver = BlockingDriver(config)
    network = Network(config, driver)
    try:
        answer = driver.run(_any(network, UpdateFeaturesRequest(feature_updates=[update])))
        assert answer.error_code == ErrorCode.NONE, answer
    finally:
        network.close()
        driver.close()


async def _any(network: Network, request: object) -> Any:
    return await network.ask_any(request, versions=(2, 2))


# -- lives, one after the other


def live(play: Play, batches: int, fault: Fault) -> NoReturn:
    try:
        Driver(play, fault).run(batches)
    except SinkTakenError:
        os._exit(TAKEN)
    except BlowError:
        os._exit(FAILED)
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED + 1)
    os._exit(DONE)


def watch(pid: int) -> dict[str, object]:
    """Until it ends or is stopped."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"pid": pid, "end": "stopped"}
    return {"pid": pid, "end": "killed" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)}


def main() -> int:
    play = Play(**json.loads(sys.argv[1]))
    pa.array(["pandas is loaded by the first"])
    for line in sys.stdin:
        order = json.loads(line)
        if pid := order.get("resume"):
            os.kill(pid, signal.SIGCONT)
        elif not (pid := os.fork()):
            point = order["point"]
            live(play, order["batches"], Fault(None if point is None else Point(point), Blow(order["blow"])))
        print(json.dumps(watch(pid)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
