"""Facts about logs that must never be forgotten, in one journal for the whole data directory.

- Starts of the broker: leader epochs count them, and the boot id tells a killed process from a machine that went down.
- Offset ceilings: offsets below the ceiling may have been seen by a reader, so none of them is given out again.
- Log starts: records below are deleted, also when their files come back after a power cut.
- Resume points: where a log goes on that lost durable records.
- Gaps: where a log did go on, with offsets left out on purpose. Any other gap is a loss.
- Compacted ends: what lies below was durable when compaction was about to leave gaps in it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Protocol, TypeAlias

from lowwater.log.journal import Journal
from lowwater.ports import Disk

LogKey: TypeAlias = tuple[bytes, int]  # topic id, partition

# A partition without a record has this ceiling, so that its first records need no fsync.
CEILING_DEFAULT = 65_536
CEILING_STEP_MAX = 1 << 24
REWRITE_FROM = 256 * 1024

_BOOT, _CEILING, _LOG_START, _RESUME, _GAP, _COMPACTED = b"B", b"C", b"S", b"R", b"G", b"K"
_BOOT_RECORD = struct.Struct(">cII")
_MARK_RECORD = struct.Struct(">c16siq")


class CeilingHolder(Protocol):
    """A log, as far as ceilings go."""

    @property
    def key(self) -> LogKey: ...

    @property
    def next_offset(self) -> int: ...

    def set_ceiling(self, ceiling: int) -> None: ...


class CeilingTicket:
    """Ceilings that were written and become usable once they are durable."""

    __slots__ = ("_journal", "raised")

    def __init__(self, journal: Journal, raised: list[tuple[CeilingHolder, int]]) -> None:
        self._journal = journal
        self.raised = raised

    def run(self) -> None:
        """The slow part; may run in another thread."""
        self._journal.sync()


class Marks:
    """`boot_count` is that of this start, `power_cut_boot` that of the last start after a power cut, or 0."""

    __slots__ = ("_gaps", "_journal", "_last_boot_id", "_marks", "boot_count", "power_cut_boot", "wanting")

    def __init__(self, journal: Journal, records: Iterable[bytes]) -> None:
        self._journal = journal
        self._marks: dict[bytes, dict[LogKey, int]] = {_CEILING: {}, _LOG_START: {}, _RESUME: {}, _COMPACTED: {}}
        self._gaps: dict[LogKey, set[int]] = {}
        self.boot_count = 0
        self.power_cut_boot = 0
        self._last_boot_id = ""
        self.wanting: dict[CeilingHolder, None] = {}
        for record in records:
            self._replay(record)

    @classmethod
    def open(cls, disk: Disk, path: str) -> Marks:
        journal, records = Journal.open(disk, path)
        # Every mark only ever grows, so those beyond a damaged one are as good as the others.
        return cls(journal, [*records, *journal.beyond])

    def _replay(self, record: bytes) -> None:
        if record[:1] == _BOOT:
            _, count, power_cut_boot = _BOOT_RECORD.unpack_from(record)
            self.power_cut_boot = max(self.power_cut_boot, power_cut_boot)
            if count >= self.boot_count:
                self.boot_count = count
                self._last_boot_id = record[_BOOT_RECORD.size :].decode()
            return
        kind, topic_id, partition, offset = _MARK_RECORD.unpack(record)
        self._note(kind, (topic_id, partition), offset)

    def _note(self, kind: bytes, key: LogKey, offset: int) -> None:
        if kind == _GAP:
            self._gaps.setdefault(key, set()).add(offset)
            return
        marks = self._marks[kind]
        marks[key] = max(offset, marks.get(key, 0))

    def begin_boot(self, boot_id: str, count_min: int, *, was_clean: bool) -> None:
        """A new start; durable on return. `count_min`: starts that are known from elsewhere."""
        last = max(self.boot_count, count_min)
        self.boot_count = last + 1
        same_boot = bool(boot_id) and boot_id == self._last_boot_id
        if last and not was_clean and not same_boot:
            self.power_cut_boot = self.boot_count
        self._last_boot_id = boot_id
        record = _BOOT_RECORD.pack(_BOOT, self.boot_count, self.power_cut_boot) + boot_id.encode()
        is_fine = was_clean and self._journal.size <= REWRITE_FROM and not self._journal.damage
        if not is_fine and self._journal.rewrite_if_room([record, *self._mark_records()]):
            return
        self._journal.append([record])
        self._journal.sync()

    def may_have_lost(self, leader_epoch: int, last_epoch: int) -> bool:
        """Whether a power cut may have taken records that readers saw: none was written since the last one.

        `leader_epoch` is the running epoch of a log, `last_epoch` that of its last batch (-1: none).
        """
        epoch_after_cut = leader_epoch - (self.boot_count - self.power_cut_boot)
        return self.power_cut_boot > 0 and 0 < epoch_after_cut > last_epoch

    # -- ceilings

    def ceiling_of(self, key: LogKey) -> int:
        return self._marks[_CEILING].get(key, CEILING_DEFAULT)

    def begin_ceilings(self) -> CeilingTicket | None:
        """Write higher ceilings for the logs that want them; None when none does."""
        if not self.wanting:
            return None
        raised = [(log, log.next_offset + _step(log.next_offset)) for log in self.wanting]
        self._journal.append([_MARK_RECORD.pack(_CEILING, *log.key, ceiling) for log, ceiling in raised])
        self.wanting.clear()
        return CeilingTicket(self._journal, raised)

    def finish_ceilings(self, ticket: CeilingTicket, error: BaseException | None) -> None:
        """The ticket ran. After a failed sync no ceiling rises any more: logs go on as far as the old ones reach."""
        if error is not None:
            return
        for log, ceiling in ticket.raised:
            self._note(_CEILING, log.key, ceiling)
            log.set_ceiling(self.ceiling_of(log.key))

    def raise_ceilings(self) -> None:
        """All of it at once, blocking; StorageError when it fails."""
        ticket = self.begin_ceilings()
        if ticket is not None:
            ticket.run()
            self.finish_ceilings(ticket, None)

    def reserve(self, log: CeilingHolder, end: int) -> None:
        """Make `end` a usable end offset now, since an append needs it."""
        self._raise(_CEILING, log.key, end + _step(end))
        log.set_ceiling(self.ceiling_of(log.key))

    # -- log starts and resume points

    def log_start_of(self, key: LogKey) -> int:
        return self._marks[_LOG_START].get(key, 0)

    def write_log_start(self, key: LogKey, offset: int) -> None:
        """Write it down; it holds, and may be noted, after `sync`."""
        self._journal.append([_MARK_RECORD.pack(_LOG_START, *key, offset)])

    def note_log_start(self, key: LogKey, offset: int) -> None:
        """The mark is durable."""
        self._note(_LOG_START, key, offset)

    def sync(self) -> None:
        """Make every mark durable that was written; for any thread. StorageError when that fails, which is final."""
        self._journal.sync()

    @property
    def is_failed(self) -> bool:
        """Whether a sync failed: what was written is in doubt."""
        return self._journal.failure is not None

    @property
    def path(self) -> str:
        return self._journal.path

    def compacted_of(self, key: LogKey) -> int:
        return self._marks[_COMPACTED].get(key, 0)

    def write_compacted(self, key: LogKey, offset: int) -> None:
        """Compaction will leave gaps below `offset`; whoever does that syncs `path` before."""
        if offset > self.compacted_of(key):
            self._journal.append([_MARK_RECORD.pack(_COMPACTED, *key, offset)])
            self._note(_COMPACTED, key, offset)

    def resume_of(self, key: LogKey) -> int:
        return self._marks[_RESUME].get(key, 0)

    def raise_resume(self, key: LogKey, offset: int) -> None:
        """Durable on return."""
        self._raise(_RESUME, key, offset)

    def is_gap(self, key: LogKey, offset: int) -> bool:
        """Whether offsets before `offset` were left out on purpose."""
        return offset in self._gaps.get(key, ())

    def note_gap(self, key: LogKey, offset: int) -> None:
        """The next batch is written at `offset`, behind a gap. Durable on return."""
        if not self.is_gap(key, offset):
            self._raise(_GAP, key, offset)

    def _raise(self, kind: bytes, key: LogKey, offset: int) -> None:
        self._journal.append([_MARK_RECORD.pack(kind, *key, offset)])
        self._journal.sync()
        self._note(kind, key, offset)

    # -- housekeeping

    def forget(self, topic_id: bytes) -> None:
        """The topic is deleted; ids never come back."""
        for marks in self._all():
            for key in [key for key in marks if key[0] == topic_id]:
                del marks[key]

    def topic_ids(self) -> set[bytes]:
        return {key[0] for marks in self._all() for key in marks}

    def _all(self) -> list[dict[LogKey, Any]]:
        return [*self._marks.values(), self._gaps]

    def close(self) -> None:
        self._journal.close()

    def _mark_records(self) -> Iterable[bytes]:
        for kind, marks in self._marks.items():
            for key, offset in marks.items():
                yield _MARK_RECORD.pack(kind, *key, offset)
        for key, offsets in self._gaps.items():
            for offset in offsets:
                yield _MARK_RECORD.pack(_GAP, *key, offset)


def _step(offset: int) -> int:
    """How far ahead of use a ceiling is set: more for logs that grow faster than an fsync returns."""
    return max(CEILING_DEFAULT, min(offset // 4, CEILING_STEP_MAX))


def raise_point(ceiling: int) -> int:
    """Past this offset the ceiling should rise: about half of the last step is used."""
    return ceiling - max(CEILING_DEFAULT, min(ceiling // 5, CEILING_STEP_MAX)) // 2
