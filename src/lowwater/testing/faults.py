"""Make a broker misbehave on purpose, one API at a time.

broker.faults.fail("Fetch", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=2)
broker.faults.delay("Produce", 500)
broker.faults.drop("Metadata")
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lowwater.broker.refusal import refuse
from lowwater.broker.router import RequestContext, Route
from lowwater.errors import ApiError, ErrorCode, WireError
from lowwater.pending import Pending
from lowwater.ports import Scheduler
from lowwater.wire.messages import API, ProduceRequest

API_NAMES = {api.name for api in API.values()}


@dataclass(slots=True)
class _Fault:
    times: int
    act: Callable[[Route, Any, RequestContext], Any]


class Faults:
    """What to do wrong next. Each fault is used up `times` times, in the order they were asked for."""

    def __init__(self, scheduler: Scheduler, serve: Callable[[Route, Any, RequestContext], Any]) -> None:
        self._scheduler = scheduler
        self._serve = serve
        self._queues: dict[str, list[_Fault]] = {}

    def fail(self, api: str, code: ErrorCode, times: int = 1) -> None:
        """Answer with `code` instead of serving the request."""
        self._add(
            api, times, lambda route, request, _: refuse(route.api, request, ApiError(code, "injected"), route.version)
        )

    def delay(self, api: str, delay_ms: int, times: int = 1) -> None:
        """Serve the request only after `delay_ms`."""
        self._add(api, times, lambda *call: self._later(delay_ms, call))

    def drop(self, api: str, times: int = 1) -> None:
        """Close the connection instead of answering."""

        def close(route: Route, _: Any, __: RequestContext) -> Any:
            raise WireError(f"injected: connection dropped at {route.api.name}")

        self._add(api, times, close)

    def clear(self) -> None:
        self._queues.clear()

    def left(self, api: str) -> int:
        """How many faults of `api` have not happened yet."""
        return sum(fault.times for fault in self._queues.get(api, ()))

    def intercept(self, route: Route, request: Any, context: RequestContext) -> Any:
        """Called by the router before each handler; None lets the request pass."""
        queue = self._queues.get(route.api.name)
        if not queue:
            return None
        fault = queue[0]
        fault.times -= 1
        if fault.times == 0:
            queue.pop(0)
        return fault.act(route, request, context)

    def _add(self, api: str, times: int, act: Callable[[Route, Any, RequestContext], Any]) -> None:
        if api not in API_NAMES:
            raise ValueError(f"no API is called {api!r}; there are {', '.join(sorted(API_NAMES))}")
        if times < 1:
            raise ValueError(f"times must be at least 1, not {times}")
        self._queues.setdefault(api, []).append(_Fault(times, act))

    def _later(self, delay_ms: int, call: tuple[Route, Any, RequestContext]) -> Pending[Any]:
        answer: Pending[Any] = Pending()
        _keep_records(call[1])

        def serve() -> None:
            served = self._serve(*call)
            if isinstance(served, Pending):
                served.on_done(lambda done: _pass_on(done, answer))
            else:
                answer.resolve(served)

        self._scheduler.call_later(delay_ms, serve)
        return answer


def _pass_on(done: Pending[Any], answer: Pending[Any]) -> None:
    try:
        answer.resolve(done.result())
    except ApiError as error:
        answer.fail(error)


def _keep_records(request: Any) -> None:
    """Records are views of the connection's buffer, which is used again before the delay is over."""
    if isinstance(request, ProduceRequest):
        for topic in request.topic_data:
            for data in topic.partition_data:
                if data.records is not None:
                    data.records = memoryview(bytearray(data.records))
