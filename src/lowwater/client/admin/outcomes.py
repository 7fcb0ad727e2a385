"""What became of many things that were asked for together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError

K = TypeVar("K")
V = TypeVar("V")


class Outcomes(Mapping[K, V], Generic[K, V]):
    """The results by item; `failed` has the errors of those without. Looking up one that failed raises its error."""

    def __init__(self, done: Mapping[K, V], failed: Mapping[K, ClientError]) -> None:
        self._done = dict(done)
        self.failed = dict(failed)

    def __getitem__(self, item: K) -> V:
        if item in self.failed:
            raise self.failed[item]
        return self._done[item]

    def __contains__(self, item: object) -> bool:
        return item in self._done

    def __iter__(self) -> Iterator[K]:
        return iter(self._done)

    def __len__(self) -> int:
        return len(self._done)

    def __repr__(self) -> str:
        return f"Outcomes({self._done!r}, failed={self.failed!r})"

    def checked(self) -> dict[K, V]:
        """All results; the first error when something failed."""
        for error in self.failed.values():
            raise error
        return dict(self._done)


async def settle(
    cluster: Cluster,
    items: Iterable[K],
    attempt: Callable[[list[K], float], Awaitable[Mapping[K, V | ClientError]]],
) -> Outcomes[K, V]:
    """Ask for all items at once, and again for those whose error may pass, as long as a call may take.

    `attempt` is given the items that are left and the ms that are left. What it raises is raised when nothing is known
    of any item, and else the error of all that are left.
    """
    trying = _Trying(items, attempt)
    if trying.left:
        try:
            await cluster.retry.run(trying.once)
        except ClientError as error:
            trying.end(error)
    return Outcomes(trying.done, trying.failed)


class _Trying(Generic[K, V]):
    def __init__(
        self, items: Iterable[K], attempt: Callable[[list[K], float], Awaitable[Mapping[K, V | ClientError]]]
    ) -> None:
        self._attempt = attempt
        self.left = list(dict.fromkeys(items))
        self.done: dict[K, V] = {}
        self.failed: dict[K, ClientError] = {}

    async def once(self, left_ms: float) -> None:
        answers = await self._attempt(list(self.left), left_ms)
        for item, answer in answers.items():
            if isinstance(answer, ClientError):
                self.failed[item] = answer
            else:
                self.done[item] = answer
                self.failed.pop(item, None)
        self.left = [item for item in self.left if item in self.failed and self.failed[item].retriable]
        if self.left:
            raise self.failed[self.left[0]]

    def end(self, error: ClientError) -> None:
        """No further tries: what is left keeps its error, which says how often it was tried."""
        if not self.done and not self.failed:
            raise error
        for item in self.left:
            self.failed.setdefault(item, error).after(error.tries, error.elapsed_ms)
