"""Maximum flow by shortest paths, in phases: what has to go somewhere is sent along chains of members that pass it on.

A phase finds the nodes by their distance from the sources, then sends along shortest paths until none is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol


class Network(Protocol):
    """A graph whose arcs are known to it alone; nodes are numbers."""

    def nodes(self) -> Iterable[int]: ...

    def sources(self) -> list[int]:
        """The nodes with an excess."""

    def excess(self, node: int) -> int: ...

    def demand(self, node: int) -> int: ...

    def successors(self, node: int, among: set[int]) -> Iterable[int]:
        """Those of `among` that an arc with room leads to."""

    def room(self, node: int, successor: int) -> int:
        """How much may still go along that arc."""

    def push(self, path: Sequence[int], amount: int) -> None: ...


def send(network: Network) -> set[int]:
    """Send all that can be sent; return the nodes that the sources left over still reach."""
    while True:
        layers, found = _layers(network)
        if not found:
            return set[int]().union(*layers)
        _Phase(network, layers).run()


def _layers(network: Network) -> tuple[list[set[int]], bool]:
    """The nodes by distance from the sources, up to the first that have a demand; and whether there is one."""
    layers = [set(network.sources())]
    unseen = set(network.nodes()) - layers[0]
    while layers[-1]:
        following: set[int] = set()
        for node in layers[-1]:
            reached = set(network.successors(node, unseen))
            following |= reached
            unseen -= reached
        layers.append(following)
        if any(network.demand(node) for node in following):
            return layers, True
    return layers, False


class _Phase:
    """Depth first through the layers; a node that leads nowhere is not looked at again."""

    def __init__(self, network: Network, layers: list[set[int]]) -> None:
        self._network = network
        self._layers = layers
        self._ahead: dict[int, list[int]] = {}

    def run(self) -> None:
        for source in self._layers[0]:
            while (amount := self._network.excess(source)) and (path := self._path(source)):
                rooms = map(self._network.room, path, path[1:])
                self._network.push(path, min(amount, self._network.demand(path[-1]), *rooms))

    def _path(self, source: int) -> list[int]:
        """Nodes from the source to one with a demand; empty when there is no way left."""
        path = [source]
        while path:
            if len(path) == len(self._layers) and self._network.demand(path[-1]):
                return path
            if (successor := self._next(path)) is not None:
                path.append(successor)
                continue
            path.pop()
            if path:
                self._ahead[path[-1]].pop()
        return path

    def _next(self, path: list[int]) -> int | None:
        if len(path) == len(self._layers):
            return None
        node = path[-1]
        if node not in self._ahead:
            self._ahead[node] = list(self._network.successors(node, self._layers[len(path)]))
        ahead = self._ahead[node]
        while ahead and not self._network.room(node, ahead[-1]):
            ahead.pop()
        return ahead[-1] if ahead else None
