"""Topics in Spark Declarative Pipelines, by the example."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import require_peer

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 500


def test_a_declarative_pipeline_reads_a_topic_into_a_table() -> None:
    require_peer("java")
    command = [sys.executable, "-m", "examples.declarative"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "DE: " in done.stdout
