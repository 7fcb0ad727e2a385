"""Work off the loop, when it or what follows it goes wrong."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import BrokenExecutor
from typing import Any

import pytest

from lowwater.server import loop
from lowwater.server.loop import PoolOffload


def test_a_callback_that_fails_does_not_keep_the_broker_from_stopping() -> None:
    async def stop() -> list[str]:
        running = asyncio.get_running_loop()
        complaints: list[str] = []
        running.set_exception_handler(lambda _, context: complaints.append(str(context["exception"])))
        offload = PoolOffload(running)

        def done(result: bool | None, error: BaseException | None) -> None:
            raise AssertionError("a bug")

        gate = threading.Event()
        offload.submit(lambda: gate.wait(10), done)
        running.call_soon(lambda: running.call_soon(gate.set))  # once somebody waits
        await asyncio.wait_for(offload.drained(), 10)
        offload.close()
        return complaints

    assert asyncio.run(stop()) == ["a bug"]


def test_a_cold_read_does_not_wait_behind_fsyncs() -> None:
    async def read() -> str | None:
        running = asyncio.get_running_loop()
        offload = PoolOffload(running, threads_max=2)
        gate, answer = threading.Event(), running.create_future()
        for _ in range(4):
            offload.submit(lambda: gate.wait(10), lambda *_: None)
        offload.submit_read(lambda: "read", lambda result, _: answer.set_result(result))
        try:
            return await asyncio.wait_for(answer, 5)
        finally:
            gate.set()
            await offload.drained()
            offload.close()

    assert asyncio.run(read()) == "read"


class NoProcesses:
    def submit(self, *_: Any) -> Any:
        raise OSError("too many processes")

    def shutdown(self, *, wait: bool) -> None:
        pass


def test_a_process_that_cannot_be_started_fails_the_work_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_new_process_pool", NoProcesses)

    async def work() -> list[BaseException | None]:
        errors: list[BaseException | None] = []
        offload = PoolOffload(asyncio.get_running_loop(), processes=True)
        offload.submit_heavy(str, 1, lambda _, error: errors.append(error))
        await asyncio.wait_for(offload.drained(), 10)
        offload.close()
        return errors

    [error] = asyncio.run(work())
    assert "too many processes" in str(error)


def test_heavy_work_is_interrupted_and_fails() -> None:
    async def scenario() -> BaseException | None:
        offload = PoolOffload(asyncio.get_running_loop(), processes=True)
        outcome: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        offload.submit_heavy(time.sleep, 3600, lambda _, error: outcome.set_result(error))
        offload.interrupt_heavy()
        error = await asyncio.wait_for(outcome, 30)
        await offload.drained()
        offload.close()
        return error

    assert isinstance(asyncio.run(scenario()), BrokenExecutor)
