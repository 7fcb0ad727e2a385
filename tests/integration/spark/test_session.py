"""A session that cannot be made: what is told, and where the rest is. Java is a script here; no JVM starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """\
import sys
from lowwater.spark import Pipeline
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
try:
    with session_for(pipeline.model):
        pass
except SparkStartError as error:
    print(int(error.exit_code), error)
print("this is not Spark's", file=sys.stderr)
"""


def test_a_spark_that_does_not_start_is_told_in_a_line_and_its_words_are_in_a_file(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho the JVM is unwell >&2\nexit 1\n")
    java.chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    environment = {**os.environ, "JAVA_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, env=environment, timeout=100
    )
    log = tmp_path / "run" / "spark.log"
    assert done.stdout.startswith("1 no session of Spark on local[*]: [JAVA_GATEWAY_EXITED]"), done.stderr
    assert f"{log} has what it said" in done.stdout
    assert done.stderr == "this is not Spark's\n"
    assert "the JVM is unwell" in log.read_text()
