"""A broker behind sockets: every request that waits has a connection of its own."""

from __future__ import annotations

import select
from types import TracebackType
from typing import Any

from tests.conformance.asking import topic_id
from tests.conformance.raw import Wire

from lowwater.wire.messages import API, DescribeGroupsRequest

PATIENCE_S = 20
GRACE_S = 2.0  # for an answer of which it is not known whether it comes
SHORT_GRACE_S = 0.03  # for an answer that does not come
SETTLING_ROUNDS = 5
_KEYS = {api.request: api.key for api in API.values()}


class WireStage:
    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._idle: list[Wire] = []
        self._busy: dict[str, tuple[Wire, int, int, int]] = {}
        self._ids: dict[str, bytes] = {}
        self._other = Wire(address)

    def __enter__(self) -> WireStage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wire in (*self._idle, self._other, *(busy[0] for busy in self._busy.values())):
            wire.socket.close()

    def send(self, name: str, request: Any, version: int) -> None:
        wire = self._idle.pop() if self._idle else Wire(self._address)
        self._busy[name] = (wire, _KEYS[type(request)], version, wire.send(request, version))

    def answer(self, name: str, *, expected: bool | None) -> Any | None:
        wire, key, version, correlation_id = self._busy[name]
        if expected is False:
            self._settle()
        patience_s = PATIENCE_S if expected else GRACE_S if expected is None else SHORT_GRACE_S
        if not select.select([wire.socket], [], [], patience_s)[0]:
            return None
        response = wire.receive(key, version, correlation_id)
        del self._busy[name]
        self._idle.append(wire)
        return response

    def topic_id(self, topic: str) -> bytes:
        if topic not in self._ids:
            self._ids[topic] = topic_id(self._other, topic)
        return self._ids[topic]

    def forget_waiting(self) -> None:
        """After a cell: who still waits is not wanted any more."""
        for wire, *_ in self._busy.values():
            wire.socket.close()
        self._busy.clear()

    def _settle(self) -> None:
        """A few round trips, during which the broker does what it was asked before them."""
        for _ in range(SETTLING_ROUNDS):
            self._other.ask(DescribeGroupsRequest(groups=["nobody"]), 0)
