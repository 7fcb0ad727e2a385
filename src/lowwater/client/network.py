"""All brokers of a cluster: who is where, and asking them.

answer = await network.ask(node, HeartbeatRequest(...))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lowwater.client.buffers import KEPT_BYTES_MAX, Buffers
from lowwater.client.config import Address, ClientConfig
from lowwater.client.driver import Driver
from lowwater.client.errors import ClosedError, ConnectError
from lowwater.client.link import Ask, Link, State
from lowwater.pending import Pending
from lowwater.wire.messages import API, Api, ApiVersionsRequest
from lowwater.wire.schema import declaration_of

USUAL = ""
FETCHING = "fetching"
WAITING = "waiting"
COORDINATING = "coordinating"
"""Lanes: what may wait long at a broker goes on its own."""


class Network:
    """Links to brokers, by node id once metadata named them; until then, and when all are gone, the bootstrap ones.

    A broker serves one request of a connection at a time. What may wait there for long, such as a Fetch or a JoinGroup,
    has a lane of its own, which is a connection of its own, so that nothing else waits behind it.
    """

    def __init__(
        self,
        config: ClientConfig,
        driver: Driver,
        *,
        kept_bytes_max: int = KEPT_BYTES_MAX,
        all_bytes_max: int = 0,
        has_lanes: bool = True,
    ) -> None:
        """`kept_bytes_max`, `all_bytes_max`: of memory for large answers, as `Buffers` explains.

        Without lanes there is one connection to each broker: for those of whom there are many, and who seldom wait.
        """
        self.config = config
        self.driver = driver
        self.has_lanes = has_lanes
        self.buffers = Buffers(kept_bytes_max, all_bytes_max)
        self._told: set[Address] = set()
        self._bootstrap = {address: self._link(address) for address in config.bootstrap}
        self._addresses: dict[int, Address] = {}
        self._links: dict[tuple[int, str], Link] = {}
        self._is_closed = False

    def _link(self, address: Address) -> Link:
        return Link(self.config, self.driver, self.buffers, address, self._told)

    # ---- who is where

    def learn(self, brokers: Mapping[int, Address]) -> None:
        """What metadata says: new brokers, brokers that moved, and, by omission, brokers that are gone."""
        if self._is_closed:
            return
        # First where they are now: who is told that a broker moved may ask it at once.
        before, self._addresses = self._addresses, dict(brokers)
        for node, address in before.items():
            if node not in brokers:
                self._drop(node, f"broker {node} has left the cluster")
            elif brokers[node] != address:
                self._drop(node, f"broker {node} has moved to {brokers[node]}")
        for address, link in self._bootstrap.items():
            if address not in brokers.values():
                link.rest()

    def _drop(self, node: int, why: str) -> None:
        for key in [key for key in self._links if key[0] == node]:
            link = self._links.pop(key)
            if self._bootstrap.get(link.address) is link:
                link.hang_up(ConnectError(why))
            else:
                link.close(ConnectError(why))

    def _link_to(self, node: int, lane: str) -> Link | None:
        """Made when first needed. None for a broker that is not known."""
        lane = lane if self.has_lanes else USUAL
        link = self._links.get((node, lane))
        address = self._addresses.get(node)
        if link is None and address is not None:
            # One connection for both: where we began is mostly one of the brokers.
            link = self._adopted(address) if lane == USUAL else None
            link = self._links[node, lane] = link or self._link(address)
        return link

    def _adopted(self, address: Address) -> Link | None:
        link = self._bootstrap.get(address)
        return None if link in self._links.values() else link

    @property
    def nodes(self) -> dict[int, Address]:
        return dict(self._addresses)

    def is_ready(self, node: int, lane: str = USUAL) -> bool:
        """Whether there is a connection that stands."""
        link = self._links.get((node, lane if self.has_lanes else USUAL))
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
        lane: str = USUAL,
        answered: bool = True,
    ) -> Pending[Any]:
        """The answer of one broker, in the newest version that both know within `versions`.

        `request` may be a function from that version to the request; then `api` is the request's class. An answer with
        records is `Leased`. Fails with a ClientError, at the latest after `timeout_ms` (request.timeout.ms).
        """
        link = self._link_to(node, lane)
        if link is None:
            return self._refused(node)
        return link.ask(_ask(request, api, versions, answered), self._timeout_ms(timeout_ms))

    def ask_any(
        self,
        request: Any,
        *,
        api: type[Any] | None = None,
        versions: tuple[int, int] | None = None,
        timeout_ms: float | None = None,
    ) -> Pending[Any]:
        """The answer of whichever broker seems best: connected, little to do, not just failed."""
        link = self.best()
        return link.ask(_ask(request, api, versions, answered=True), self._timeout_ms(timeout_ms))

    async def supports(self, node: int, request: type[Any]) -> range:
        """The versions of an API that both know; empty when the broker does not have it. Connects when needed."""
        link = self._link_to(node, USUAL)
        if link is None:
            return (await self._refused(node)) or range(0)
        if link.state is not State.READY:
            await self.ask(node, ApiVersionsRequest(), versions=(0, 2))
        return link.versions(_api_of(request))

    def best(self) -> Link:
        """Of the brokers, then of the bootstrap addresses, the one most likely to answer soon."""
        for node in self._addresses:
            self._link_to(node, USUAL)
        usual = [link for (_, lane), link in self._links.items() if lane == USUAL]
        return min([*usual, *self._bootstrap.values()], key=_readiness)

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
        for link in [*self._links.values(), *self._bootstrap.values()]:
            link.close(ClosedError("the client was closed"))
        self._links.clear()
        self._addresses.clear()
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
