"""Hostile batches give a reader errors that say where; other partitions do not notice, and the process lives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SEED, COUNT = 1, 120


@pytest.mark.timeout(600)
def test_a_reader_outlives_whatever_a_partition_holds(request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    cache = request.config.cache.mkdir("checked-kernels")
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.checked_reader", str(SEED), str(COUNT)]
    done = subprocess.run(command, env=env, cwd=request.config.rootpath, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith(f"{COUNT} readers")
    assert "CorruptRecordsError" in done.stdout
    assert "RecordFormatError" in done.stdout
