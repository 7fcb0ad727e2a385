"""The durable log of metadata records: `<data>/metadata/log`."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from lowwater.broker.metadata_records import Record, decode, encode
from lowwater.errors import StorageError
from lowwater.log.journal import Journal
from lowwater.ports import Disk

logger = logging.getLogger(__name__)

DIRECTORY = "metadata"
FILE = "log"


class MetadataLog:
    """`commit` is blocking and for one thread at a time.

    After a failure other than a full disk nothing more is written.
    """

    def __init__(self, disk: Disk, data_dir: str, journal: Journal, records: int) -> None:
        self._disk = disk
        self._data_dir = data_dir
        self._journal = journal
        self._directory_durable = False
        self.records = records
        self.failed: str | None = None

    @classmethod
    def open(cls, disk: Disk, data_dir: str, *, was_clean: bool = True) -> tuple[MetadataLog, list[Record]]:
        """The log, created if missing, and every record in it: durable, also if the last stop was not clean."""
        path = f"{data_dir}/{DIRECTORY}"
        disk.mkdir(path)
        journal, payloads = Journal.open(disk, f"{path}/{FILE}")
        if journal.damage is not None:
            # Each record stands for itself: those beyond the damage still hold, and the file is put in order again.
            payloads = [*payloads, *journal.beyond]
            logger.error(
                "the metadata log was damaged: topics or settings may be missing. No topic's data is deleted for that."
            )
            journal.rewrite(payloads)
        elif payloads and not was_clean:
            # A record whose sync failed reads well, and is on no disk: it must not be lost after it was acted upon.
            journal.rewrite_if_room(payloads)
        return cls(disk, data_dir, journal, len(payloads)), [decode(payload) for payload in payloads]

    def commit(self, records: Sequence[Record]) -> None:
        """Return when the records are durable; StorageError when they are not written, or nobody can say."""
        if self.failed is not None:
            raise StorageError(f"metadata cannot be changed until a restart: {self.failed}")
        try:
            self._journal.append(map(encode, records))
            self._journal.sync()
            self._make_directory_durable()
        except StorageError as error:
            # When the disk was full the next change may well succeed; after anything else nobody knows what is there.
            if not error.retriable:
                self.failed = str(error)
            raise
        self.records += len(records)

    def _make_directory_durable(self) -> None:
        """Once after each start: an earlier one may have been killed between making the directory and syncing it."""
        if self._directory_durable:
            return
        try:
            self._disk.sync_dir(self._data_dir)
        except OSError as error:
            raise StorageError(f"{self._data_dir} could not be made durable: {error}") from error
        self._directory_durable = True

    def rewrite(self, records: Sequence[Record]) -> None:
        """Replace everything by `records`, atomically."""
        self._journal.rewrite(map(encode, records))
        self.records = len(records)

    def close(self) -> None:
        self._journal.close()
