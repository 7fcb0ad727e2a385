"""Programs that are started in another way than Spark would."""

import os
import subprocess
import sys

from lowwater.spark.launchers import launcher, quoted, worker_python


def test_workers_import_the_pyspark_that_is_installed(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    path = f"/opt/spark/python/lib/pyspark.zip:{tmp_path}/a b:/opt/spark/python/lib/py4j-0.10.9.9-src.zip:/x/*"
    code = "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])"
    told = subprocess.check_output(
        [worker_python(environment), "-c", code, "one two", "*"], text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert told == f"{tmp_path}/a b:/x/* ['one two', '*']\n"


def test_workers_run_the_same_python(tmp_path):
    command = [worker_python({"XDG_CACHE_HOME": str(tmp_path)}), "-c", "import sys; print(sys.executable)"]
    assert subprocess.check_output(command, text=True).strip() == sys.executable


def test_the_same_text_is_written_once(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    first = launcher("tool", "#!/bin/sh\necho 1\n", environment)
    stamp = first.stat().st_ino
    assert launcher("tool", "#!/bin/sh\necho 1\n", environment) == first
    assert first.stat().st_ino == stamp
    assert launcher("tool", "#!/bin/sh\necho 2\n", environment) != first


def test_a_broken_launcher_is_written_again(tmp_path):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    file = launcher("tool", "#!/bin/sh\necho 1\n", environment)
    file.write_text("")
    assert subprocess.check_output([launcher("tool", "#!/bin/sh\necho 1\n", environment)]) == b"1\n"


def test_quotes_survive_the_shell():
    assert subprocess.check_output(["sh", "-c", f"printf %s {quoted(chr(39) + ' $x')}"], text=True) == "' $x"
