"""Pipelines in somebody else's session, and in ones of their own: what they need of it, and what they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.conftest import require_peer
from tests.crash.spark_job import CONFS
from tests.crash.spark_life import environment
from tests.spark.clusters import connect_server

from lowwater.spark import Pipeline, PipelineError
from lowwater.spark.pipeline.failures import SparkFailedError
from lowwater.spark.pipeline.refused import RefusedError

STEPS, PACKAGE = "steps_of_a_session", "parts_of_a_session"
FILE = f"""\
name = "shop"
checkpoint = "run"
kafka.bootstrap.servers = "localhost:1"
[source.orders]
topics = "orders"
columns = ["key", "timestamp"]
[[step]]
name = "loud"
python = "{STEPS}:loud"
from = "orders"
[[step]]
name = "keys"
sql = "SELECT key FROM loud WHERE key != '${{SHOP_PASSWORD:-}}'"
[sink.out]
from = "keys"
format = "noop"
"""
LOUD = f"""\
from pyspark.sql.functions import udf
from pyspark.sql.types import StringType
import {PACKAGE}.ends
from {PACKAGE} import marks
from {PACKAGE}.words import shout

@udf(StringType())
def louder(text):
    return shout(text) + marks.MARK + {PACKAGE}.ends.END

def loud(orders):
    return orders.select(louder(orders.key.cast("string")).alias("key"))
"""
LOCKED = """\
from threading import Lock
from .marks import upper

LOCK = Lock()

def shout(text):
    with LOCK:
        return upper(text)
"""
ROWS = '[[case]]\ngiven.orders = [{ key = "a" }]\nexpect.keys = [{ key = "A!." }]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """With a pipeline's module, and a package that it imports; workers do not have it on their path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "shop.toml").write_text(FILE)
    (tmp_path / "shop.test.toml").write_text(ROWS)
    (tmp_path / f"{STEPS}.py").write_text(LOUD)
    package = tmp_path / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "ends.py").write_text('END = "."\n')
    (package / "words.py").write_text("from .marks import upper\n\ndef shout(text):\n    return upper(text)\n")
    (package / "marks.py").write_text('MARK = "!"\n\ndef upper(text):\n    return text.upper()\n')
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in (STEPS, PACKAGE)]:
        del sys.modules[name]


def is_right(folder: Path, session: SparkSession) -> bool:
    return Pipeline.load(folder / "shop.toml").test(folder / "shop.test.toml", spark=session).is_right


def test_functions_beside_the_file_come_to_workers_that_do_not_have_its_folder(
    session: SparkSession, folder: Path
) -> None:
    assert is_right(folder, session)


# ---- views


@pytest.fixture
def views(session: SparkSession) -> Iterator[Callable[[], list[tuple[str, list[int]]]]]:
    """Of the caller's, called as a source and a step are, in other letters too; and what is in them."""
    session.createDataFrame([(7,)], "mine int").createOrReplaceTempView("orders")
    session.sql("CREATE TEMPORARY VIEW Keys AS SELECT mine + 1 AS mine FROM orders")
    yield lambda: [(name, [row.mine for row in session.table(name).collect()]) for name in ("orders", "keys")]
    for name in ("orders", "keys"):
        session.catalog.dropTempView(name)


def names(session: SparkSession) -> set[str]:
    return {table.name.lower() for table in session.catalog.listTables() if table.isTemporary}


def test_views_of_the_caller_are_there_again_afterwards(session, folder, views) -> None:
    before = names(session)
    assert is_right(folder, session)
    assert "loud" in Pipeline.load(folder / "shop.toml").explain(spark=session)
    assert views() == [("orders", [7]), ("keys", [8])]
    assert names(session) == before


def test_views_of_the_caller_are_there_again_after_an_error(session, folder, views) -> None:
    before = names(session)
    text = FILE.replace("SELECT key FROM", "SELECT kye FROM")
    pipeline = Pipeline.parse(text, folder=folder)
    with pytest.raises(PipelineError, match="kye"):
        pipeline.explain(spark=session)
    with pytest.raises(PipelineError, match="kye"):
        pipeline.run(spark=session)
    with pytest.raises(RefusedError, match="kye"):
        pipeline.test(folder / "shop.test.toml", spark=session)
    assert views() == [("orders", [7]), ("keys", [8])]
    assert names(session) == before


# ---- what is shown


@pytest.mark.parametrize("secret", ["very-hushed", "very\nhushed"])
def test_plans_show_no_secret(session, folder, monkeypatch, secret) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", secret)
    text = Pipeline.load(folder / "shop.toml").explain(spark=session)
    assert "[hidden]" in text
    assert "hushed" not in text


def test_a_step_that_fails_on_its_rows_is_told_without_secrets(session, folder, monkeypatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "very-hushed")
    step = '[[step]]\nname = "wrong"\nsql = "SELECT raise_error(concat(key, \'${SHOP_PASSWORD}\')) AS key FROM loud"\n'
    pipeline = Pipeline.parse(FILE.replace("[sink.out]", f"{step}[sink.out]"), folder=folder)
    (folder / "wrong.test.toml").write_text(ROWS.replace("expect.keys", "expect.wrong"))
    with pytest.raises(SparkFailedError, match=r"A!\.\[hidden\]") as failed:
        pipeline.test(folder / "wrong.test.toml", spark=session)
    assert "\n" not in str(failed.value)


# ---- sessions of one's own

OWN = """\
import sys
from pathlib import Path
from lowwater.spark import Pipeline
from lowwater.spark.pipeline.failures import SparkFailedError
from lowwater.spark.pipeline.run_lock import alone
from lowwater.spark.session import session_for

WRONG = '[[step]]\\nname = "wrong"\\nsql = "SELECT raise_error(key) AS key FROM loud"\\n'
folder, temporary = map(Path, sys.argv[1:])
log = folder / "run" / "spark.log"
pipeline = Pipeline.load(folder / "shop.toml")

assert "key string" in pipeline.explain()
assert not log.parent.exists()
assert not Path("spark-warehouse").exists()

log.parent.mkdir()
log.write_text("of a run")
assert pipeline.test(folder / "shop.test.toml").is_right
assert [file.name for file in log.parent.iterdir()] == ["spark.log"]
assert log.read_text() == "of a run"
assert not list(temporary.glob("*spark.log"))

(folder / "wrong.test.toml").write_text(sys.stdin.read())
try:
    Pipeline.parse((folder / "shop.toml").read_text() + WRONG, folder=folder).test(folder / "wrong.test.toml")
except SparkFailedError as error:
    [kept] = temporary.glob("*spark.log")
    assert str(error).endswith(f"; {kept} has what Spark said"), error
    kept.unlink()

try:
    with session_for(pipeline.model) as session:
        session.sparkContext._jvm.System.err.println("it creaks")
        raise RuntimeError("it broke")
except RuntimeError as error:
    [kept] = temporary.glob("*spark.log")
    assert error.__notes__ == [f"{kept} has what Spark said"]
    assert "it creaks" in kept.read_text()

with alone(pipeline.model), session_for(pipeline.model) as session:
    session.sparkContext._jvm.System.err.println("it runs")
assert "it runs" in log.read_text()
assert "of a run" not in log.read_text()
print("done")
"""


def test_only_a_run_writes_the_log_beside_the_checkpoints(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_peer("java")
    # Workers of such a session have the folder: what functions use need not be sent to them.
    (folder / PACKAGE / "words.py").write_text(LOCKED)
    temporary = tmp_path_factory.mktemp("temporary")
    command = [sys.executable, "-c", OWN, str(folder), str(temporary)]
    variables = {**os.environ, "TMPDIR": str(temporary)}
    rows = ROWS.replace("expect.keys", "expect.wrong")
    done = subprocess.run(
        command, input=rows, capture_output=True, text=True, env=variables, cwd=temporary, timeout=400
    )
    assert done.stdout.endswith("done\n"), done.stderr


# ---- a session of Spark Connect

CONNECT = """\
import os
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from lowwater.spark import Pipeline

folder, remote = Path(sys.argv[1]), sys.argv[2]
session = SparkSession.builder.remote(remote).getOrCreate()
session.sql("SELECT 7 AS mine").createOrReplaceTempView("orders")
assert Pipeline.load(folder / "shop.toml").test(folder / "shop.test.toml", spark=session).is_right
assert [row.mine for row in session.table("orders").collect()] == [7]
assert [table.name for table in session.catalog.listTables() if table.isTemporary] == ["orders"]
print("done", flush=True)
os._exit(0)
"""


def test_over_connect_functions_travel_and_views_are_there_again_too(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    require_peer("java")
    # Python looks for modules where it was started too.
    with connect_server(tmp_path_factory.mktemp("elsewhere"), CONFS) as remote:
        command = [sys.executable, "-c", CONNECT, str(folder), remote]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=400)
    assert done.stdout.endswith("done\n"), done.stderr
