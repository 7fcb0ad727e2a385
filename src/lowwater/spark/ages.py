"""How old the oldest record is that a query has not read yet: its lag in seconds.

Asked of the broker by a look at one row per partition, behind the back of whoever wants to know.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from lowwater.client.errors import ClientError
from lowwater.client.peeking import peek
from lowwater.spark.course import Course
from lowwater.spark.driver_client import DriverClient
from lowwater.types import TopicPartition

LOG = logging.getLogger("lowwater.spark")
PATIENCE_MS = 10_000


class Ages:
    """One look at a time, in a thread of its own; what was found last can be had at once."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = settings
        self._client: DriverClient | None = None
        self._looking: threading.Thread | None = None
        self._oldest_ms: int | None = None

    @property
    def oldest_ms(self) -> int | None:
        """The timestamp that the last look has found; None when there was nothing, or no look yet."""
        return self._oldest_ms

    def look(self, at: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> None:
        """Returns at once. Nothing happens while the look before is still going on."""
        if self._looking is not None and self._looking.is_alive():
            return
        unread = {one: at[one] for one, end in latest.items() if one in at and at[one] < end}
        self._looking = threading.Thread(target=self._look, args=(unread,), name="lowwater-ages", daemon=True)
        self._looking.start()

    def wait(self, timeout_s: float) -> None:
        """For the look that is going on."""
        if self._looking is not None:
            self._looking.join(timeout_s)

    def _look(self, unread: Mapping[TopicPartition, int]) -> None:
        if not unread:
            self._oldest_ms = None
            return
        try:
            if self._client is None:
                self._client = DriverClient(self._settings)
            found = self._client.run(peek(self._client.cluster, unread, timeout_ms=PATIENCE_MS))
        except ClientError as error:
            LOG.debug("how old unread records are cannot be asked: %s", error)
            return
        self._oldest_ms = min((row.timestamp_ms for row in found.values() if row is not None), default=None)

    def close(self) -> None:
        self.wait(PATIENCE_MS / 1000)
        if self._client is not None and not (self._looking is not None and self._looking.is_alive()):
            self._client.close()


class Looks(Protocol):
    """What is used of Ages."""

    @property
    def oldest_ms(self) -> int | None: ...
    def look(self, at: Mapping[TopicPartition, int], latest: Mapping[TopicPartition, int]) -> None: ...
    def close(self) -> None: ...


class Aging:
    """Notes how many seconds queries are behind, as of the look before: nothing waits for brokers here."""

    def __init__(self, looks: Callable[[str], Looks | None], now_s: Callable[[], float] = time.time) -> None:
        """`looks`: those of a query, by its name; None: nobody looks."""
        self._looks_of = looks
        self._looks: dict[str, Looks | None] = {}
        self._now_s = now_s

    def note(self, course: Course) -> None:
        """To be called behind each micro-batch."""
        if course.last is None or course.behind is None or not course.behind.records:
            return
        if course.query not in self._looks:
            self._looks[course.query] = self._looks_of(course.query)
        looks = self._looks[course.query]
        if looks is None:
            return
        sources = [source for source in course.last.sources if source.behind is not None]
        at = {one: offset for source in sources for one, offset in source.at.items()}
        looks.look(at, {one: end for source in sources for one, end in source.latest.items()})
        if looks.oldest_ms is not None:
            course.behind_s = max(0.0, self._now_s() - looks.oldest_ms / 1000)

    def close(self) -> None:
        for looks in self._looks.values():
            if looks is not None:
                looks.close()
