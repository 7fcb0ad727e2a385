"""The dashboard's files, from inside the package."""

from __future__ import annotations

from functools import cache
from importlib import resources

from starlette.responses import Response

_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


def find(path: str) -> Response | None:
    """What lies at a path; None when it is not the dashboard's."""
    name = "index.html" if path == "/" else path.removeprefix("/static/")
    if (path != "/" and not path.startswith("/static/")) or name not in _files():
        return None
    return Response(_files()[name], media_type=_KINDS[name.rpartition(".")[2]], headers={"Cache-Control": "no-cache"})


@cache
def _files() -> dict[str, bytes]:
    """All of them, read once: only what is known by name can be asked for."""
    found: dict[str, bytes] = {}
    pending = [("", resources.files("lowwater.http") / "static")]
    while pending:
        prefix, directory = pending.pop()
        for entry in directory.iterdir():
            if entry.is_dir():
                pending.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.rpartition(".")[2] in _KINDS:
                found[prefix + entry.name] = entry.read_bytes()
    return found
