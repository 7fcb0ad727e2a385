"""What the coordinator asks of the topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class TopicsView(Protocol):
    """The topics of this moment. Internal ones are among them."""

    @property
    def version(self) -> int:
        """Grows with every change."""

    def names(self) -> Iterable[str]: ...

    def partition_count(self, name: str) -> int | None:
        """None: there is no such topic."""

    def topic_id(self, name: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...
