"""All brokers of a cluster: who is where, and asking them.

answer = await network.ask(node, HeartbeatRequest(...))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lowwater.client.buffers import Buffers
from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Driver
from lowwater.client.errors import ClosedError, ConnectError
from lowwater.client.link import Ask, Link, State
from lowwater.pending import Pending
from lowwater.wire.messages import API, Api, ApiVersionsRequest
from lowwater.wire.schema import declaration_of


class Network:
    """Links to brokers, by node id once metadata named them; until then, and when all are gone, the bootstrap ones."""

    def __init__(self, config: ClientConfig, driver: Driver) -> None:
        self.config = config
        self.driver = driver
        self.buffers = Buffers()
        self._bootstrap = {address: self._link(address) for address in config.bootstrap}
        self._nodes: dict[int, Link] = {}
        self._is_closed = False

    def _link(self, address: Address) -> Link:
        return Link(self.config, self.driver, self.buffers, address)

    # ---- who is where

    def learn(self, brokers: Mapping[int, Address]) -> None:
        """What metadata says: new brokers, brokers that moved, and, by omission, brokers that are gone."""
        if self._is_closed:
            return
        for node in self._nodes.keys() - brokers.keys():
            self._drop(node, f"broker {node} has left the cluster")
        for node, address in brokers.items():
            known = self._nodes.get(node)
            if known is not None and known.address != address:
                self._drop(node, f"broker {node} has moved to {address}")
            if node not in self._nodes:
                # One connection for both: where we began is mostly one of the brokers.
                self._nodes[node] = self._adopted(address) or self._link(address)
        for link in self._bootstrap.values():
            if link not in self._nodes.values():
                link.rest()

    def _adopted(self, address: Address) -> Link | None:
        link = self._bootstrap.get(address)
        return link if link is not None and link not in self._nodes.values() else None

    def _drop(self, node: int, why: str) -> None:
        link = self._nodes.pop(node)
        if self._bootstrap.get(link.address) is not link:
            link.close(ConnectError(why))

    @property
    def nodes(self) -> dict[int, Address]:
        return {node: link.address for node, link in self._nodes.items()}

    def is_ready(self, node: int) -> bool:
        """Whether there is a connection that stands."""
        link = self._nodes.get(node)
        return link is not None and link.state is State.READY

    # ---- asking

    def ask(
        self,
        node: int,
        request: Any,
        *,
        api: type[Any] | None = None,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
        answered: bool = True,
    ) -> Pending[Any]:
        """The answer of one broker, in the newest version that both know within `versions`.

        `request` may be a function from that version to the request; then `api` is the request's class. An answer with
        records is a `Held`. Fails with a ClientError, at the latest after `timeout_ms` (request.timeout.ms).
        """
        link = self._nodes.get(node)
        if link is None:
            return self._refused(node)
        return link.ask(_ask(request, api, versions, answered), self._timeout_ms(timeout_ms))

    def ask_any(
        self, request: Any, *, versions: tuple[int, int] | None = None, timeout_ms: float | None = None
    ) -> Pending[Any]:
        """The answer of whichever broker seems best: connected, little to do, not just failed."""
        link = self.best()
        return link.ask(_ask(request, None, versions, answered=True), self._timeout_ms(timeout_ms))

    async def supports(self, node: int, request: type[Any]) -> range:
        """The versions of an API that both know; empty when the broker does not have it. Connects when needed."""
        link = self._nodes.get(node)
        if link is None:
            return (await self._refused(node)) or range(0)
        if link.state is not State.READY:
            await self.ask(node, ApiVersionsRequest(), versions=(0, 2))
        return link.versions(_api_of(request))

    def best(self) -> Link:
        """Of the brokers, then of the bootstrap addresses, the one most likely to answer soon."""
        return min(self._candidates(), key=_readiness)

    def _candidates(self) -> Iterator[Link]:
        yield from self._nodes.values()
        for link in self._bootstrap.values():
            if link not in self._nodes.values():
                yield link

    def _refused(self, node: int) -> Pending[Any]:
        refused: Pending[Any] = Pending()
        if self._is_closed:
            refused.fail(ClosedError("the client was closed"))
        else:
            refused.fail(ConnectError(f"broker {node} is not known, or not any more"))
        return refused

    def _timeout_ms(self, timeout_ms: float | None) -> float:
        return self.config.int("request.timeout.ms") if timeout_ms is None else timeout_ms

    def close(self) -> None:
        """Close every connection; whoever still waits is told so."""
        self._is_closed = True
        for link in list(self._candidates()):
            link.close(ClosedError("the client was closed"))
        self._nodes.clear()
        self.buffers.clear()


def _ask(request: Any, api: type[Any] | None, versions: tuple[int, int] | None, answered: bool) -> Ask:
    described = _api_of(api or type(request))
    return Ask(described, request, versions or (described.version_min, described.version_max), answered)


def _api_of(request: type[Any]) -> Api:
    return API[declaration_of(request).key]


def _readiness(link: Link) -> tuple[int, float]:
    """Smaller is better: open, then not yet tried, then those that failed, the soonest to be tried again first."""
    if link.state is State.READY:
        return 0, link.load
    if link.state in (State.IDLE, State.CONNECTING):
        return 1, link.failures
    return 2, link.retry_at_ms
