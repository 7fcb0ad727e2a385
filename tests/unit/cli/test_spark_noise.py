"""What of Spark's words is passed on."""

from __future__ import annotations

import subprocess
import sys

from lowwater.cli.spark_noise import Sieve, sifted_children

START = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/16 11:23:58 WARN Utils: Your hostname, vm, resolves to a loopback address: 127.0.0.1; using 192.0.2.2 instead
26/11/16 11:23:58 WARN Utils: Set SPARK_LOCAL_IP if you need to bind to another address
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
26/11/16 11:24:07 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...
Setting Spark log level to "FATAL".
"""
LET_GO = """\
Traceback (most recent call last):
  File "/lib/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/lib/pyspark/daemon.py", line 95, in worker
    outfile.flush()
BrokenPipeError: [Errno 32] Broken pipe
"""
FAILED = """\
Traceback (most recent call last):
  File "/lib/pyspark/daemon.py", line 264, in manager
    code = worker(sock, authenticated)
MemoryError
"""
NEWS = "26/11/16 11:24:07 ERROR Executor: no space left on device\n"


def sifted(text: str) -> str:
    sieve = Sieve()
    passed = [line for given in text.splitlines(keepends=True) for line in sieve.taken(given)]
    return "".join([*passed, *sieve.rest()])


def test_what_spark_says_at_every_start_is_left_out():
    assert sifted(START + NEWS) == NEWS


def test_a_worker_that_was_let_go_is_no_news():
    assert sifted(LET_GO + NEWS + LET_GO) == NEWS


def test_other_errors_are_passed_on_whole():
    assert sifted(FAILED + NEWS + LET_GO + FAILED) == FAILED + NEWS + FAILED


def test_a_traceback_that_is_cut_off_is_passed_on():
    cut = "".join(FAILED.splitlines(keepends=True)[:2])
    assert sifted(NEWS + cut) == NEWS + cut


CHILD = f"import sys; sys.stderr.write({START + NEWS!r})"
PARENT = f"""
import subprocess, sys, threading
from lowwater.cli.spark_noise import sifted_children
with sifted_children():
    child = subprocess.Popen([sys.executable, "-c", {CHILD!r}])
child.wait()
print("ours", file=sys.stderr)
for thread in threading.enumerate():
    if thread.name == "lowwater-stderr":
        thread.join(60)
"""


def test_children_are_sifted_and_we_are_not():
    done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=100)
    assert sorted(done.stderr.splitlines()) == sorted([NEWS.strip(), "ours"])


def test_nothing_is_left_open_behind(capfd):
    with sifted_children():
        pass
    subprocess.run([sys.executable, "-c", "import sys; sys.stderr.write('Setting Spark log level to')"], check=True)
    assert capfd.readouterr().err == "Setting Spark log level to"
