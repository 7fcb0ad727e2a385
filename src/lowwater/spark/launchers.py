"""Small shell scripts that start a program in another way than Spark would. Kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# Spark puts its archive of pyspark in front of the installed package. It has no compiled modules, so that every process
# compiles what it imports: a second of CPU each, and Spark waits for ten seconds only.
_PYTHON = """\
#!/bin/sh
set -f
rest=
IFS=:
for part in $PYTHONPATH; do
  case $part in
    */pyspark.zip | */py4j-*-src.zip) ;;
    *) rest="$rest${{rest:+:}}$part" ;;
  esac
done
unset IFS
PYTHONPATH=$rest
export PYTHONPATH
exec {python} "$@"
"""


def worker_python(environment: Mapping[str, str] | None = None) -> Path:
    """This Python, for the workers of a Spark on this machine: they import the pyspark that is installed."""
    return launcher("python", _PYTHON.format(python=quoted(sys.executable)), environment)


def launcher(name: str, text: str, environment: Mapping[str, str] | None = None) -> Path:
    """A program `bin/<name>` in a folder of its own; the same text has the same place."""
    environment = os.environ if environment is None else environment
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        return _written(cache / "lowwater" / f"{name}-{digest}" / "bin" / name, text)
    except OSError:  # a home that cannot be written to
        return _written(Path(tempfile.mkdtemp(prefix=f"lowwater-{name}-")) / "bin" / name, text)


def quoted(path: str | os.PathLike[str]) -> str:
    """For the shell."""
    return "'" + str(path).replace("'", "'\\''") + "'"


def _written(file: Path, text: str) -> Path:
    """Whole at any moment: several processes may do this at once."""
    if file.is_file() and file.read_text() == text and os.access(file, os.X_OK):
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w") as opened:
        opened.write(text)
    os.chmod(name, 0o755)
    os.replace(name, file)
    return file
