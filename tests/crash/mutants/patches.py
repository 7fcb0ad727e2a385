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
SUITE_TIMEOUT_S = 900
TESTS_FAILED = 1


class PatchError(Exception):
    """The text a mutant replaces is gone or no longer unique: the mutant must be rewritten."""


class Verdict(Enum):
    CAUGHT = "caught"
    SURVIVED = "SURVIVED"
    HUNG = "caught (hung)"
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
def copied_source() -> Iterator[Path]:
    """A temporary copy of src/ to mutate."""
    with tempfile.TemporaryDirectory(prefix="lowwater-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        yield copy


def run(mutant: Mutant, suites: list[str]) -> Result:
    with copied_source() as source:
        file = source / "lowwater" / mutant.file
        file.write_text(apply(mutant, file.read_text()))
        return Result(mutant, *run_suites(source, suites))


def run_suites(source: Path, suites: list[str]) -> tuple[Verdict, str]:
    """Run pytest against that copy of the source; stop at the first failure."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    _assert_copy_is_used(source, environment)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *suites]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SUITE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict.HUNG, ""
    if done.returncode == 0:
        return Verdict.SURVIVED, ""
    return (Verdict.CAUGHT if done.returncode == TESTS_FAILED else Verdict.BROKEN), _first_failure(done.stdout)


def _assert_copy_is_used(source: Path, environment: dict[str, str]) -> None:
    where = subprocess.run(
        [sys.executable, "-c", "import lowwater; print(lowwater.__file__)"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert where.startswith(str(source)), f"the suites would run {where.strip()}, not the mutated copy"


def _first_failure(output: str) -> str:
    lines = output.strip().splitlines() or ["no output"]
    failures = [line.removeprefix("FAILED ") for line in lines if line.startswith(("FAILED tests", "ERROR tests"))]
    return (failures or lines[-1:])[0][:200]
