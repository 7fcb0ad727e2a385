"""What a log is when it is opened, however that became known: from the checkpoint, or by recovery."""

from __future__ import annotations

from dataclasses import dataclass, field

from lowwater.log.doubt import Doubt
from lowwater.log.epochs import LeaderEpochs
from lowwater.log.files import FileCache
from lowwater.log.marks import Marks
from lowwater.log.producers import Producers
from lowwater.log.segment import Segment
from lowwater.ports import Disk


@dataclass(slots=True)
class LogState:
    log_start: int = 0
    log_end: int = 0
    flushed_end: int = 0
    # The next batch gets at least this offset: those before may have been seen and lost.
    resume_at: int = 0
    clean_until: int = 0  # compacted below this offset
    segments: list[Segment] = field(default_factory=list)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    producers: Producers = field(default_factory=Producers)
    # Segments that this start found written, perhaps not yet synced.
    unsynced: list[Segment] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Shared:
    """What all logs of one data directory use together."""

    disk: Disk
    files: FileCache
    marks: Marks
    doubt: Doubt
