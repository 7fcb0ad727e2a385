"""Whether a log can be used, and if not, whether that may pass."""

from __future__ import annotations

import logging
from collections.abc import Callable

from lowwater.errors import StorageError
from lowwater.log.atomic_file import is_disk_full
from lowwater.types import TopicPartition

logger = logging.getLogger(__name__)


class Availability:
    """A log that is offline serves nothing: until the next start, or until what it lacked is there again."""

    __slots__ = ("_retry", "offline", "topic_partition")

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.offline: str | None = None
        self._retry: Callable[[], None] | None = None

    def failure(self) -> StorageError | None:
        """Why this log is offline, or None. What only lacked room is tried again."""
        if self._retry is not None:
            self._retry()
        if self.offline is None:
            return None
        return StorageError(f"{self.topic_partition} is offline: {self.offline}", retriable=self._retry is not None)

    def go_offline(self, why: str) -> StorageError:
        """Serve nothing more before the next start."""
        if why != self.offline:
            logger.error("%s goes offline: %s", self.topic_partition, why)
        self.retire(why)
        return StorageError(f"{self.topic_partition} is offline: {why}")

    def retire(self, why: str) -> None:
        """Go offline on purpose."""
        self.offline = why
        self._retry = None

    def check_online(self) -> None:
        failure = self.failure()
        if failure is not None:
            raise failure

    def attempt(self, what: str, action: Callable[[], None]) -> None:
        """Do something without which the log is of no use; if the disk is full, again with every use."""
        try:
            action()
        except (OSError, StorageError) as error:
            why = f"{what}: {error}"
            if not (is_disk_full(error) if isinstance(error, OSError) else error.retriable):
                self.go_offline(why)
                return
            if why != self.offline:
                logger.error("%s cannot be used before there is room: %s", self.topic_partition, why)
            self.offline = why
            self._retry = lambda: self.attempt(what, action)
        else:
            self._retry = self.offline = None
