"""Moves as few partitions as possible to give every member of a block the number it must have.

A flow of least cost: every member starts with what it owns, what is too much here flows to where something is missing,
and a partition taken from its owner costs one. Partitions of a topic that change hands are alike, so only their
number matters until the end. When nothing can flow any more at the prices of the nodes, those out of reach rise by one;
and only along arcs that cost exactly the difference of the prices at their ends may anything flow. So it always takes a
cheapest way, and the whole costs the least.

Nodes: topics, classes (all members with one subscription), members, and for each block a pool of the extras: of its
members, only so many may have one partition more than the floor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from lowwater.groups.assignors.flow import send
from lowwater.groups.assignors.levels import Block

UNLIMITED = 1 << 62


class Holder:
    """A member: how many partitions of each topic it owned, and how many it has now."""

    __slots__ = ("floor", "held", "load", "owned", "pool")

    def __init__(self, owned: dict[int, int], pool: int, floor: int) -> None:
        self.owned = owned
        self.held = dict(owned)
        self.load = sum(owned.values())
        self.pool = pool
        self.floor = floor

    def give(self, topic: int, amount: int) -> None:
        self.held[topic] = self.held.get(topic, 0) + amount
        self.load += amount

    def take(self, topic: int, amount: int) -> None:
        self.held[topic] -= amount
        if not self.held[topic]:
            del self.held[topic]
        self.load -= amount

    def missing(self, topic: int) -> int:
        """How many it owned and has no more."""
        return self.owned.get(topic, 0) - self.held.get(topic, 0)


class Movement:
    """The flow of all blocks at once: they have nothing in common.

    `owned` has the number of partitions by topic for every member, `unowned` the number without an owner by topic.
    """

    def __init__(
        self, found: list[Block], class_members: list[list[int]], owned: list[dict[int, int]], unowned: list[int]
    ) -> None:
        self._unowned = unowned
        self._first_class = len(unowned)
        self._first_member = self._first_class + len(class_members)
        self._first_pool = self._first_member + len(owned)
        self._price = [0] * (self._first_pool + len(found))
        self._class_members = [{self._first_member + each for each in members} for members in class_members]
        self._takers: list[frozenset[int]] = [frozenset()] * len(unowned)
        self._missing: dict[int, set[int]] = {}
        self._extra = [block.extra for block in found]
        self._above_floor: list[set[int]] = [set() for _ in found]
        self.holders = [Holder({}, 0, 0)] * len(owned)
        for number, block in enumerate(found):
            self._enter(number, block, class_members, owned)

    def _enter(self, number: int, block: Block, class_members: list[list[int]], owned: list[dict[int, int]]) -> None:
        for source in block.sources:
            takers = frozenset(self._first_class + each for each in source.classes)
            for topic in source.topics:
                self._takers[topic] = takers
        topics = {topic for source in block.sources for topic in source.topics}
        for each in block.classes:
            for member in class_members[each]:
                kept = {topic: count for topic, count in owned[member].items() if topic in topics}
                for topic in owned[member].keys() - topics:
                    self._unowned[topic] += owned[member][topic]
                self.holders[member] = Holder(kept, self._first_pool + number, block.floor)
                self._note_load(self._first_member + member)

    def run(self) -> None:
        self._deal()
        while True:
            reached = send(self)
            if not self.sources():
                return
            for node in range(len(self._price)):
                if node not in reached:
                    self._price[node] += 1

    def _deal(self) -> None:
        """Give what has no owner to those below their floor, going round, those with the least choice first.

        That is a cheapest way; `send` does the rest.
        """
        needy = {
            self._first_class + number: deque(each for each in sorted(members) if self.demand(each))
            for number, members in enumerate(self._class_members)
        }
        open_classes = {each for each, members in needy.items() if members}
        for topic in sorted(range(self._first_class), key=lambda topic: len(self._takers[topic])):
            while self._unowned[topic] and (takers := self._takers[topic] & open_classes):
                for each in sorted(takers)[: self._unowned[topic]]:
                    node = needy[each].popleft()
                    self.push((topic, each, node), 1)
                    if self.demand(node):
                        needy[each].append(node)
                    elif not needy[each]:
                        open_classes.discard(each)

    def nodes(self) -> Iterable[int]:
        return range(len(self._price))

    def sources(self) -> list[int]:
        return [node for node in range(len(self._price)) if self.excess(node)]

    def excess(self, node: int) -> int:
        if node < self._first_class:
            return self._unowned[node]
        if node >= self._first_pool:
            return max(0, -self._spare(node))
        if node < self._first_member:
            return 0
        holder = self.holders[node - self._first_member]
        return max(0, holder.load - holder.floor - 1)

    def demand(self, node: int) -> int:
        if node >= self._first_pool:
            return max(0, self._spare(node))
        if node < self._first_member:
            return 0
        holder = self.holders[node - self._first_member]
        return max(0, holder.floor - holder.load)

    def _spare(self, pool: int) -> int:
        return self._extra[pool - self._first_pool] - len(self._above_floor[pool - self._first_pool])

    def successors(self, node: int, among: set[int]) -> Iterable[int]:
        if node < self._first_class:
            return self._after_topic(node, among)
        if node < self._first_member:
            return self._equally_priced(node, self._class_members[node - self._first_class] & among)
        if node >= self._first_pool:
            return self._equally_priced(node, self._above_floor[node - self._first_pool] & among)
        return self._after_member(node, among)

    def _equally_priced(self, node: int, others: Iterable[int]) -> list[int]:
        price = self._price[node]
        return [other for other in others if self._price[other] == price]

    def _after_topic(self, topic: int, among: set[int]) -> list[int]:
        """Anybody who subscribes, or at a gain of one, an owner who lost it."""
        found = self._equally_priced(topic, self._takers[topic] & among)
        if topic in self._missing:
            gained = self._price[topic] - 1
            found += [node for node in self._missing[topic] & among if self._price[node] == gained]
        return found

    def _after_member(self, node: int, among: set[int]) -> list[int]:
        """A topic of which it has more than it owned, or at a cost of one, one that it owns; or it keeps an extra."""
        holder = self.holders[node - self._first_member]
        found = [topic for topic in holder.held if topic in among and self._releasable(node, topic)]
        if holder.pool in among and self._price[holder.pool] == self._price[node] and holder.load == holder.floor:
            found.append(holder.pool)
        return found

    def _releasable(self, node: int, topic: int) -> int:
        """How many partitions of the topic it may give away at these prices."""
        holder = self.holders[node - self._first_member]
        held, owned = holder.held.get(topic, 0), holder.owned.get(topic, 0)
        cost = self._price[topic] - self._price[node]
        if held > owned:
            return held - owned if cost == 0 else 0
        return held if cost == 1 else 0

    def room(self, node: int, successor: int) -> int:
        if self._first_member <= node < self._first_pool:
            if successor < self._first_class:
                return self._releasable(node, successor)
            holder = self.holders[node - self._first_member]
            return int(holder.load == holder.floor)
        if node >= self._first_pool:
            holder = self.holders[successor - self._first_member]
            return int(holder.load > holder.floor)
        if node < self._first_class and successor >= self._first_member:
            return self.holders[successor - self._first_member].missing(node)
        return UNLIMITED

    def push(self, path: Sequence[int], amount: int) -> None:
        if path[0] < self._first_class:
            self._unowned[path[0]] -= amount
        topic = -1
        for node, successor in zip((-1, *path), (*path, -1), strict=True):
            if 0 <= successor < self._first_class:
                topic = successor
                if node >= self._first_member:
                    self._change(node, topic, -amount)
            elif self._first_member <= successor < self._first_pool and 0 <= node < self._first_member:
                self._change(successor, topic, amount)
        for node in path:
            if self._first_member <= node < self._first_pool:
                self._note_load(node)

    def _change(self, node: int, topic: int, amount: int) -> None:
        holder = self.holders[node - self._first_member]
        if amount < 0:
            holder.take(topic, -amount)
        else:
            holder.give(topic, amount)
        if topic not in holder.owned:
            return
        if holder.missing(topic) > 0:
            self._missing.setdefault(topic, set()).add(node)
        else:
            self._missing.get(topic, set()).discard(node)

    def _note_load(self, node: int) -> None:
        holder = self.holders[node - self._first_member]
        above = self._above_floor[holder.pool - self._first_pool]
        if holder.load > holder.floor:
            above.add(node)
        else:
            above.discard(node)
