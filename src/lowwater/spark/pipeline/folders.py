"""Where a pipeline writes: no two writers in one folder, and none within another's."""

from __future__ import annotations

import posixpath
from typing import TypeAlias

from lowwater.spark.pipeline.model import Model, is_address
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.queries import checkpoints

Place: TypeAlias = tuple[str, ...]
"""The file system, and the parts of the path in it."""

_WAY_OUT = "each query writes to folders of its own, neither within another one's nor around it: choose another path"


def check_folders_apart(model: Model, report: Report) -> None:
    """Two writers of one folder would each take the other's files for their own."""
    taken = {
        f"the checkpoint of {label}": _place(model, folder)
        for label, folder in checkpoints(model).items()
        if model.checkpoint
    }
    for sink in model.sinks:
        if not sink.path:
            continue
        place = _place(model, model.location(sink.path))
        told = next((told for other, known in taken.items() if (told := _overlap(place, other, known))), None)
        if told is not None:
            report.value(("sink", sink.name, "path"), f"{sink.path!r} {told}", _WAY_OUT)
        taken[f"the sink {sink.name}"] = place


def _overlap(place: Place, other: str, known: Place) -> str | None:
    shared = min(len(place), len(known))
    if place[:shared] != known[:shared]:
        return None
    if len(place) == len(known):
        return f"is where {other} is already"
    return f"lies within {_shown(known)}, where {other} is" if len(place) > shared else f"has {other} in it"


def _place(model: Model, location: str) -> Place:
    """Paths are files of this machine where everything runs here; elsewhere Spark's settings say what they are."""
    system, path = "", location
    if is_address(location):
        system, path = _split(location)
    if model.is_local and system in ("file:", "file://localhost"):
        system = ""
    return (system, *(part for part in posixpath.normpath(path).split("/") if part not in ("", ".")))


def _split(address: str) -> tuple[str, str]:
    """s3a://bucket/a is of s3a://bucket; file:/a and file:///a are the same."""
    scheme, _, rest = address.partition(":")
    if not rest.startswith("//"):
        return f"{scheme.lower()}:", rest
    host, slash, path = rest.removeprefix("//").partition("/")
    return f"{scheme.lower()}://{host}" if host else f"{scheme.lower()}:", slash + path


def _shown(place: Place) -> str:
    return f"{place[0]}/{'/'.join(place[1:])}"
