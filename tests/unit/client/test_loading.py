"""Kernels are loaded beside the client's first steps, compiled once, and missing packages are named."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from lowwater.client.loading import READING, WRITING, load, load_behind

KERNELS = "walking.walk scanning.scan ordering.stamp ordering.merge gathering.gather_binary encoding.encode"


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=110, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_a_thread_loads_what_the_client_needs_later() -> None:
    out = run(
        "import sys, threading\n"
        "from lowwater.client.loading import READING, load, load_behind\n"
        "print('numba' in sys.modules)\n"
        "load_behind(READING)\n"
        "[thread] = [one for one in threading.enumerate() if one.name == 'lowwater-kernels']\n"
        "print(load(READING).Held.__name__)\n"
        "thread.join()\n"
        "load_behind(READING)\n"
        "print(threading.active_count())\n"
    )
    assert out.split() == ["False", "Held", "1"]


def test_what_is_loaded_already_takes_no_thread() -> None:
    modules = [load(READING), load(WRITING)]
    before = threading.active_count()
    load_behind(READING, WRITING)
    assert threading.active_count() == before
    assert [one.__name__ for one in modules] == [READING, WRITING]


def test_a_process_finds_the_kernels_that_another_has_compiled() -> None:
    load(READING), load(WRITING)
    out = run(
        "import importlib\n"
        f"for kernel in {KERNELS!r}.split():\n"
        "    module, name = kernel.split('.')\n"
        "    stats = getattr(importlib.import_module('lowwater.wire.kernels.' + module), name).stats\n"
        "    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))\n"
    )
    assert out.splitlines() == ["1 0"] * len(KERNELS.split())


def test_without_the_extra_the_error_says_what_to_install() -> None:
    out = run(
        "import sys; sys.modules['numba'] = None\n"
        "from lowwater.client.loading import READING, MissingExtraError, load, load_behind\n"
        "load_behind(READING)\n"
        "try: load(READING)\n"
        "except MissingExtraError as error: print(error)\n"
    )
    assert out == "the package numba is not installed; pip install 'lowwater[reader]'\n"
