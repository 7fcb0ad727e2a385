"""What is left of a Spark that was being started."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from lowwater.spark.orphans import PROCESSES, end_launched

pytestmark = pytest.mark.skipif(not PROCESSES.exists(), reason="processes are not listed here")
WAITS = "print('waits', flush=True); import sys; sys.stdin.read()"


def test_a_spark_of_ours_that_was_being_started_is_ended_and_nothing_else() -> None:
    commands = [
        [sys.executable, "-c", WAITS, "org.apache.spark.deploy.SparkSubmit"],
        [sys.executable, "-c", WAITS, "of somebody else"],
    ]
    children = [subprocess.Popen(each, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for each in commands]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "waits\n"
    end_launched()
    ours, other = children
    assert ours.wait(30) == -signal.SIGTERM
    assert other.poll() is None
    for child in children:
        child.communicate()
