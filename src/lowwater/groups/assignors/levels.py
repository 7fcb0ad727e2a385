"""How many partitions each member must have for a group to be as balanced as its subscriptions allow.

An assignment is balanced when no partition can leave one member and another arrive at a second one that has at least
two fewer, be it through a chain of members that each pass on a partition. Such assignments all have the same numbers
of partitions, largest first; the largest is the smallest possible, then the next, and the sum of squares is least too.

The members fall into blocks: in every balanced assignment, a member of a block has `floor` partitions or one more, and
a topic goes to the members of one block only. A block is found by trying: where some members cannot be filled to the
average or some topics find no room at it, the cut that shows so divides the members into a more and a less loaded part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lowwater.groups.assignors.flow import send


@dataclass(frozen=True, slots=True)
class Source:
    """Topics with the same classes of subscribers, as one."""

    topics: list[int]
    partitions: int
    classes: frozenset[int]


@dataclass(frozen=True, slots=True)
class Block:
    """`extra` of its members have one partition more than `floor`. A source's classes are those of the block only."""

    sources: list[Source]
    classes: list[int]
    floor: int
    extra: int


def blocks(sources: list[Source], class_sizes: Sequence[int]) -> list[Block]:
    """The blocks of a group; `class_sizes` has the number of members with each subscription."""
    found = []
    undivided = [(sources, list(range(len(class_sizes))))] if class_sizes else []
    while undivided:
        sources, classes = undivided.pop()
        partitions = sum(source.partitions for source in sources)
        floor, extra = divmod(partitions, sum(class_sizes[each] for each in classes))
        if more_loaded := _Trial(sources, {each: class_sizes[each] for each in classes}, floor).more_loaded():
            undivided += _divide(sources, classes, more_loaded)
        else:
            found.append(Block(sources, classes, floor, extra))
    return found


_Part: TypeAlias = tuple[list[Source], list[int]]


def _divide(sources: list[Source], classes: list[int], more_loaded: set[int]) -> tuple[_Part, _Part]:
    """What can go to the less loaded classes goes there."""
    bound = [source for source in sources if source.classes <= more_loaded]
    free = [
        Source(source.topics, source.partitions, source.classes - more_loaded)
        for source in sources
        if not source.classes <= more_loaded
    ]
    return (bound, sorted(more_loaded)), (free, [each for each in classes if each not in more_loaded])


class _Trial:
    """Lets the sources flow into the classes, each member up to `floor`, then one more.

    As nodes, classes have their number, sources −1 − theirs.
    """

    def __init__(self, sources: list[Source], class_sizes: dict[int, int], floor: int) -> None:
        self._sources = sources
        self._class_sizes = class_sizes
        self._left = [source.partitions for source in sources]
        self._free = {each: floor * size for each, size in class_sizes.items()}
        self._held: dict[int, dict[int, int]] = {each: {} for each in class_sizes}

    def more_loaded(self) -> set[int]:
        """The classes that stay above the others, whatever is done; none when all can have `floor` or one more."""
        self._pour()
        send(self)
        if any(self._free.values()):
            return self._class_sizes.keys() - self._short()
        for each, size in self._class_sizes.items():
            self._free[each] = size
        self._pour()
        return {node for node in send(self) if node >= 0}

    def _short(self) -> set[int]:
        """The classes below `floor`, and those that could give to them."""
        holders: dict[int, list[int]] = {}
        for each, held in self._held.items():
            for node in held:
                holders.setdefault(node, []).append(each)
        takers: dict[int, list[int]] = {}
        for node in holders:
            for each in self._sources[-1 - node].classes:
                takers.setdefault(each, []).append(node)
        short = {each for each, free in self._free.items() if free}
        ahead = list(short)
        while ahead:
            for node in takers.pop(ahead.pop(), ()):
                giving = set(holders.pop(node, ())) - short
                short |= giving
                ahead += giving
        return short

    def _pour(self) -> None:
        """Fill by taking whatever fits, those with the least choice first; `send` puts right what that gets wrong."""
        by_choice = sorted(range(len(self._sources)), key=lambda number: len(self._sources[number].classes))
        open_classes = {each for each, free in self._free.items() if free}
        for number in by_choice:
            for each in self._sources[number].classes & open_classes:
                if not (left := self._left[number]):
                    break
                self.push((-1 - number, each), min(left, self._free[each]))
                if not self._free[each]:
                    open_classes.discard(each)

    def nodes(self) -> Iterable[int]:
        return range(-len(self._sources), max(self._class_sizes, default=0) + 1)

    def sources(self) -> list[int]:
        return [-1 - number for number, left in enumerate(self._left) if left]

    def excess(self, node: int) -> int:
        return self._left[-1 - node]

    def demand(self, node: int) -> int:
        return self._free[node] if node >= 0 else 0

    def successors(self, node: int, among: set[int]) -> Iterable[int]:
        return self._sources[-1 - node].classes & among if node < 0 else self._held[node].keys() & among

    def room(self, node: int, successor: int) -> int:
        return self._sources[-1 - node].partitions if node < 0 else self._held[node].get(successor, 0)

    def push(self, path: Sequence[int], amount: int) -> None:
        self._left[-1 - path[0]] -= amount
        self._free[path[-1]] -= amount
        for source, taker in zip(path[::2], path[1::2], strict=True):
            self._held[taker][source] = self._held[taker].get(source, 0) + amount
        for giver, source in zip(path[1::2], path[2::2], strict=False):
            held = self._held[giver]
            held[source] -= amount
            if not held[source]:
                del held[source]
