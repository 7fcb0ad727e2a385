"""Applies one mutation to a copy of the source, runs the suites on it, and says whether they noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# All that the suites read. Apache Kafka is left out: no rule is broken in a way that only it could tell.
PINNED = ("src", "tests", "peers", "docs", "examples", "README.md", "Makefile", "pyproject.toml")
# A test that hangs fails by its own timeout; this one is for a machine that is too busy to tell.
SUITE_TIMEOUT_S = 3600
TESTS_FAILED = 1


class PatchError(Exception):
    """The text a mutant replaces is gone or no longer unique: the mutant must be rewritten."""


class Verdict(Enum):
    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    TOO_SLOW = "TOO SLOW"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` becomes `new` in `file` (below src/lowwater), which breaks `rule`."""

    name: str
    rule: str
    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Result:
    mutant: Mutant
    verdict: Verdict
    first_failure: str


def apply(mutant: Mutant, source: str) -> str:
    """The mutated text. Loud when the patch does not apply exactly once."""
    found = source.count(mutant.old)
    if found != 1:
        raise PatchError(f"mutant {mutant.name!r}: its text occurs {found} times in {mutant.file}:\n{mutant.old}")
    return source.replace(mutant.old, mutant.new)


def check_applies(mutant: Mutant) -> None:
    compile(apply(mutant, (ROOT / "src/lowwater" / mutant.file).read_text()), mutant.file, "exec")


@contextmanager
def pinned_tree() -> Iterator[Path]:
    """A copy of the source and its suites as they are now: a run takes long, and files may change meanwhile."""
    with tempfile.TemporaryDirectory(prefix="lowwater-pinned-") as folder:
        tree = Path(folder)
        for name in PINNED:
            whole = ROOT / name
            if whole.is_dir():
                shutil.copytree(whole, tree / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                shutil.copy(whole, tree)
        yield tree


def run(mutant: Mutant, suites: list[str], tree: Path = ROOT) -> Result:
    """Whether the suites of `tree` notice the mutant."""
    with tempfile.TemporaryDirectory(prefix="lowwater-mutant-") as folder:
        source = Path(folder) / "src"
        # Compiled files too: Python sees by the time of the changed one that it has to be compiled anew.
        shutil.copytree(tree / "src", source, ignore=shutil.ignore_patterns("*.egg-info"))
        file = source / "lowwater" / mutant.file
        file.write_text(apply(mutant, file.read_text()))
        return Result(mutant, *run_suites(source, suites, tree))


def run_suites(source: Path, suites: list[str], tree: Path = ROOT) -> tuple[Verdict, str]:
    """Run those suites of `tree` against that source; stop at the first failure."""
    environment = {name: value for name, value in os.environ.items() if name != "LOWWATER_REQUIRE_PEERS"}
    environment["PYTHONPATH"] = str(source)
    _assert_copy_is_used(source, environment, tree)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *suites]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SUITE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict.TOO_SLOW, ""
    if done.returncode == 0:
        return Verdict.SURVIVED, ""
    return (Verdict.CAUGHT if done.returncode == TESTS_FAILED else Verdict.BROKEN), _first_failure(done.stdout)


def _assert_copy_is_used(source: Path, environment: dict[str, str], tree: Path) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import lowwater; print(lowwater.__file__)"],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert where.startswith(str(source)), f"the suites would run {where.strip()}, not the mutated copy"


def _first_failure(output: str) -> str:
    lines = output.strip().splitlines() or ["no output"]
    failures = [line.partition(" ")[2] for line in lines if line.startswith(("FAILED tests", "ERROR tests"))]
    return (failures or lines[-1:])[0][:200]
