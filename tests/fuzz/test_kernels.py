"""Hostile answers of brokers give errors or rows; no kernel reads or writes outside what it was given."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SEED, COUNT = 1, 1500


@pytest.mark.timeout(300)
def test_no_kernel_leaves_its_arrays_or_reads_behind_a_buffer(request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    cache = request.config.cache.mkdir("checked-kernels")
    env = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.checked_kernels", str(SEED), str(COUNT)]
    done = subprocess.run(command, env=env, cwd=request.config.rootpath, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith(f"{COUNT} answers")
    assert int(done.stdout.split()[2]) > COUNT  # some were good
