"""A session that cannot be made: what is told, and where the rest is. Java is a script here; no JVM starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """\
import contextlib
import sys
from lowwater.spark import Pipeline
from lowwater.spark.pipeline.run_lock import alone
from lowwater.spark.session import SparkStartError, session_for

pipeline = Pipeline(
    {
        "name": "p",
        "checkpoint": "run",
        "kafka": {"bootstrap.servers": "x:1"},
        "source": {"a": {"topics": "a"}},
        "sink": {"o": {"from": "a", "format": "noop"}},
    },
    folder=sys.argv[1],
)
with alone(pipeline.model) if sys.argv[2] == "run" else contextlib.nullcontext():
    try:
        with session_for(pipeline.model):
            pass
    except SparkStartError as error:
        print(int(error.exit_code), error)
print("this is not Spark's", file=sys.stderr)
"""
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a Java that cannot start anything, and a place for temporary files."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho the JVM is unwell >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    (tmp_path / "tmp").mkdir()
    return tmp_path


def session(folder: Path, purpose: str) -> Done:
    environment = {**os.environ, "JAVA_HOME": str(folder), "TMPDIR": str(folder / "tmp")}
    command = [sys.executable, "-c", SCRIPT, str(folder), purpose]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=100)
    assert done.stdout.startswith("1 no session of Spark on local[*]: [JAVA_GATEWAY_EXITED]"), done.stderr
    assert done.stderr == "this is not Spark's\n"
    return done


def test_a_spark_that_does_not_start_is_told_in_a_line_and_its_words_are_in_a_file(folder: Path) -> None:
    done = session(folder, "run")
    log = folder / "run" / "spark.log"
    assert f"{log} has what it said" in done.stdout
    assert "the JVM is unwell" in log.read_text()


def test_one_that_is_not_for_a_run_leaves_the_log_of_a_run_alone(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "spark.log").write_text("of a run\n")
    done = session(folder, "explain")
    assert [file.name for file in (folder / "run").iterdir()] == ["spark.log"]
    assert (folder / "run" / "spark.log").read_text() == "of a run\n"
    [log] = (folder / "tmp").glob("lowwater-*-spark.log")
    assert f"{log} has what it said" in done.stdout
    assert "the JVM is unwell" in log.read_text()


def test_one_that_is_not_for_a_run_makes_no_folder_of_checkpoints(folder: Path) -> None:
    session(folder, "explain")
    assert not (folder / "run").exists()
