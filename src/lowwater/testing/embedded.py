"""A real broker for tests: in a thread of this process, or in a process of its own that can be killed.

with Broker() as broker:
    Producer({"bootstrap.servers": broker.bootstrap})
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import IO, TypeVar

from lowwater.config import BrokerConfig
from lowwater.errors import LowwaterError
from lowwater.pending import Pending, run
from lowwater.ports import Clock, Disk
from lowwater.server.node import Node
from lowwater.testing.faults import Faults
from lowwater.testing.generated import Generator, ensure_topic, fill

T = TypeVar("T")

HOST = "127.0.0.1"
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
# A test does not wait for members that may yet come, and may let them time out quickly.
PATIENCE = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
}


class Broker:
    """A context manager around one broker on an ephemeral port and, unless given, a temporary directory.

    `config` takes settings by Kafka's names; some of groups default to what suits tests (`PATIENCE`). `subprocess=True`
    runs `lowwater broker` itself, which `kill` can end with SIGKILL; without it the broker runs in a thread, and faults
    and generated records are at hand.
    """

    def __init__(
        self,
        config: Mapping[str, str] | None = None,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        port: int = 0,
        subprocess: bool = False,
        clock: Clock | None = None,
        disk: Disk | None = None,
    ) -> None:
        self._config = {**PATIENCE, **(config or {})}
        self._own_dir = data_dir is None
        self.data_dir = os.fspath(data_dir) if data_dir is not None else ""
        self._port = port
        self._runner: _InThread | _InProcess = (
            _InProcess() if subprocess else _InThread(BrokerConfig.load(None, self._config), clock, disk)
        )

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client's bootstrap servers."""
        return f"{HOST}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def pid(self) -> int:
        """Of the process the broker runs in."""
        return self._runner.pid

    def start(self) -> Broker:
        if not self.data_dir:
            self.data_dir = tempfile.mkdtemp(prefix="lowwater-")
        self._port = self._runner.start(self._config, self.data_dir, self._port)
        return self

    def stop(self) -> None:
        """Stop cleanly; the data stays, and `start` brings the broker back on the same port."""
        self._runner.stop()

    def kill(self) -> None:
        """End without any clean-up: SIGKILL for a process, dropped without flush or marker in a thread."""
        self._runner.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop, and remove the directory if it was a temporary one."""
        try:
            self.stop()
        finally:
            if self._own_dir and self.data_dir:
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.data_dir = ""

    # ---- only in a thread

    @property
    def node(self) -> Node:
        return self._in_thread().node

    @property
    def faults(self) -> Faults:
        """Answer with errors, delay, or drop connections, one API at a time."""
        return self._in_thread().faults

    def requests(self) -> dict[str, int]:
        """How many requests of each API were served."""
        return self.call(self.node.router.requests_by_api)

    def fill(
        self, topic: str, partition: int = 0, *, first: int = 0, next: int, generate: Generator | None = None
    ) -> None:
        """Make the partition span [first, next) with generated records; the topic is created when missing."""
        broker = self.node.broker
        self._in_thread().settle(lambda: run(ensure_topic(broker, topic, partition + 1)))
        self.call(lambda: fill(broker, topic, partition, first, next, generate))

    def call(self, work: Callable[[], T]) -> T:
        """Run `work` on the broker's own thread."""
        return self._in_thread().call(work)

    def _in_thread(self) -> _InThread:
        if not isinstance(self._runner, _InThread):
            raise LowwaterError("this needs a broker in a thread: Broker(subprocess=False)")
        return self._runner


class _InThread:
    """Runs the node on an event loop of its own."""

    def __init__(self, config: BrokerConfig, clock: Clock | None, disk: Disk | None) -> None:
        self._broker_config = config
        self._clock = clock
        self._disk = disk
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._clean = True
        self._failure: BaseException | None = None
        self._node: Node | None = None
        self._faults: Faults | None = None
        self.pid = os.getpid()

    @property
    def node(self) -> Node:
        if self._node is None:
            raise LowwaterError("the broker is not running")
        return self._node

    @property
    def faults(self) -> Faults:
        if self._faults is None:
            raise LowwaterError("the broker is not running")
        return self._faults

    def start(self, config: Mapping[str, str], data_dir: str, port: int) -> int:
        if self._thread is not None:
            raise LowwaterError("the broker is running already")
        ready = threading.Event()
        self._clean, self._failure = True, None
        self._thread = threading.Thread(
            target=self._run, args=(data_dir, port, ready), name="lowwater-broker", daemon=True
        )
        self._thread.start()
        ready.wait(START_TIMEOUT_S)
        if self._failure is not None:
            self._thread.join()
            self._thread = None
            raise self._failure
        return self.node.endpoint.port

    def stop(self) -> None:
        self._end(clean=True)

    def kill(self) -> None:
        self._end(clean=False)

    def call(self, work: Callable[[], T]) -> T:
        if self._loop is None:
            raise LowwaterError("the broker is not running")

        async def on_loop() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(on_loop(), self._loop).result(START_TIMEOUT_S)

    def settle(self, begin: Callable[[], Pending[T]]) -> T:
        """Begin on the loop, and wait for the outcome."""
        if self._loop is None:
            raise LowwaterError("the broker is not running")
        outcome: Future[T] = Future()

        def settled(done: Pending[T]) -> None:
            try:
                outcome.set_result(done.result())
            except Exception as error:
                outcome.set_exception(error)

        self._loop.call_soon_threadsafe(lambda: begin().on_done(settled))
        return outcome.result(START_TIMEOUT_S)

    def _end(self, *, clean: bool) -> None:
        if self._thread is None or self._loop is None or self._stop is None:
            return
        self._clean = clean
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise LowwaterError("the broker did not stop in time")
        self._thread = self._loop = self._stop = self._node = self._faults = None
        if self._failure is not None:
            raise self._failure

    def _run(self, data_dir: str, port: int, ready: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._serve(data_dir, port, ready))
        except BaseException as error:  # handed to whoever waits in start() or stop()
            self._failure = error
        finally:
            ready.set()

    async def _serve(self, data_dir: str, port: int, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        node = Node(self._broker_config, data_dir, disk=self._disk, clock=self._clock)
        self._faults = Faults(node.scheduler, node.router.serve)
        node.router.intercept = self._faults.intercept
        await node.start(HOST, port)
        self._node = node
        ready.set()
        await self._stop.wait()
        if self._clean:
            await node.stop()
        else:
            await node.abandon()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


class _InProcess:
    """Runs `lowwater broker` and reads its ready line."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[str] | None = None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise LowwaterError("the broker is not running")
        return self._process.pid

    def start(self, config: Mapping[str, str], data_dir: str, port: int) -> int:
        arguments = [sys.executable, "-m", "lowwater.cli.main", "broker", "--no-http"]
        arguments += ["--data-dir", data_dir, "--port", str(port)]
        for name, value in config.items():
            arguments += ["--set", f"{name}={value}"]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed with the process
        self._process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if " ready kafka=" not in line:
            self._process.wait()
            raise LowwaterError(f"the broker did not start:\n{self.log_text()}")
        return int(line.split(" ready kafka=")[1].split()[0].rpartition(":")[2])

    def log_text(self) -> str:
        """What the broker wrote to stderr."""
        if self._log is None:
            return ""
        self._log.flush()
        self._log.seek(0)
        return self._log.read()

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(STOP_TIMEOUT_S)
        finally:
            if process.stdout is not None:
                process.stdout.close()
            if self._log is not None:
                self._log.close()
                self._log = None
