"""What stands in the checkpoint of a streaming query, read from its folder without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lowwater.errors import LowwaterError
from lowwater.spark.offsets import Offset, OffsetError
from lowwater.types import TopicPartition


class CheckpointError(LowwaterError):
    """A checkpoint that cannot be read from here."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`finished` is the last micro-batch that was, `planned` the last one whose offsets are written down; -1: none.

    `at` is where the query goes on: behind the last finished batch.
    """

    query_id: str | None = None
    planned: int = -1
    finished: int = -1
    finished_ms: int | None = None
    watermark_ms: int | None = None
    at: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def is_there(self) -> bool:
        return self.query_id is not None or self.planned >= 0

    @property
    def is_cut_off(self) -> bool:
        """A micro-batch is running now, or will be run again."""
        return self.planned > self.finished


def local_folder(location: str) -> Path | None:
    """None for one that only Spark can reach."""
    if "://" not in location and not location.startswith("file:"):
        return Path(location)
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


def read_checkpoint(location: str) -> Checkpoint:
    """An empty one where there is none yet. CheckpointError when it is elsewhere, or not to be understood."""
    folder = local_folder(location)
    if folder is None:
        raise CheckpointError(
            f"the checkpoint in {location} is not on this machine, and cannot be looked into from here"
        )
    try:
        return _read(folder)
    except (OSError, ValueError, KeyError, OffsetError) as error:
        raise CheckpointError(f"the checkpoint in {location} cannot be read: {error}") from None


def _read(folder: Path) -> Checkpoint:
    planned = max(_numbers(folder / "offsets"), default=-1)
    finished = max(_numbers(folder / "commits"), default=-1)
    metadata = folder / "metadata"
    query_id = json.loads(metadata.read_text())["id"] if metadata.exists() else None
    if finished < 0:
        return Checkpoint(query_id, planned)
    finished_file = folder / "commits" / str(finished)
    at: dict[TopicPartition, int] = {}
    for offset in _offsets(folder / "offsets" / str(finished)):
        at.update(offset.at)
    return Checkpoint(
        query_id,
        planned,
        finished,
        int(finished_file.stat().st_mtime * 1000),
        _json_line(finished_file).get("nextBatchWatermarkMs") or None,
        at,
    )


def _numbers(folder: Path) -> Iterator[int]:
    if folder.is_dir():
        yield from (int(file.name) for file in folder.iterdir() if file.name.isdigit())


def _offsets(file: Path) -> Iterator[Offset]:
    """Those of sources that keep offsets as we do; Spark writes one line for each source, behind two of its own."""
    for line in file.read_text().split("\n")[2:]:
        told = json.loads(line) if line.strip() not in ("", "-") else None
        if isinstance(told, Mapping):
            yield Offset.parse(told)


def _json_line(file: Path) -> dict[str, Any]:
    """The second line; the first is a version."""
    lines = file.read_text().split("\n")
    found = json.loads(lines[1]) if len(lines) > 1 and lines[1].strip() else {}
    assert isinstance(found, dict)
    return found
