"""A pipeline is run once at a time."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.resetting import Output, plan, reset
from lowwater.spark.pipeline.run_lock import RunningError, alone, is_held_here, refuse_running

FILE = """
name = "shop"
checkpoint = "{checkpoint}"
kafka.bootstrap.servers = "localhost:9092"
[source.orders]
topics = "orders"
[sink.files]
from = "orders"
format = "parquet"
path = "files"
"""
HOLDER = """
import sys
from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.run_lock import alone
with alone(Pipeline.load(sys.argv[1]).model):
    print("runs", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def model(tmp_path: Path):
    return Pipeline.parse(FILE.format(checkpoint="checkpoint"), folder=tmp_path).model


def test_whoever_comes_second_is_told_which_process_runs_it(model):
    with (
        alone(model),
        pytest.raises(RunningError, match=f"shop is being run, or reset, by process {os.getpid()} on"),
        alone(model),
    ):
        pass
    with alone(model):
        pass


def test_a_pipeline_that_runs_is_not_reset(model, tmp_path):
    part = tmp_path / "files" / "part-0.parquet"
    for folder in (part.parent, tmp_path / "checkpoint" / "files"):
        folder.mkdir(parents=True)
    part.write_bytes(b"rows")
    planned = plan(model, output=Output.DELETE)
    with alone(model), pytest.raises(RunningError):
        reset(model, planned)
    assert part.exists()
    reset(model, planned)
    assert not part.exists()


def test_a_run_that_was_killed_is_over(model, tmp_path):
    file = tmp_path / "shop.toml"
    file.write_text(FILE.format(checkpoint="checkpoint"))
    command = [sys.executable, "-c", HOLDER, str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "runs\n"
        with pytest.raises(RunningError, match=f"process {holder.pid}"):
            refuse_running(model)
        holder.kill()
    refuse_running(model)


def test_to_look_whether_one_runs_makes_no_folder(model, tmp_path):
    refuse_running(model)
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_on_another_machine_is_not_guarded(tmp_path):
    model = Pipeline.parse(FILE.format(checkpoint="hdfs://far/shop"), folder=tmp_path).model
    with alone(model), alone(model):
        pass


def test_to_look_whether_one_runs_writes_nothing_and_keeps_nobody_from_running(model, tmp_path):
    with alone(model):
        pass
    lock = tmp_path / "checkpoint" / "files.lock"
    lock.chmod(0o444)
    refuse_running(model)
    assert lock.read_bytes() == b""
    with alone(model):
        pass


def test_pipelines_that_share_a_folder_but_no_query_run_side_by_side(model, tmp_path):
    other = Pipeline.parse(
        FILE.format(checkpoint="checkpoint").replace("sink.files", "sink.more"), folder=tmp_path
    ).model
    with alone(model), alone(other):
        pass


def test_over_spark_connect_nothing_is_made_here(tmp_path):
    text = FILE.format(checkpoint=tmp_path / "checkpoint").replace('path = "files"', f'path = "{tmp_path}/files"')
    with alone(Pipeline.parse('remote = "sc://far"' + text).model):
        assert not (tmp_path / "checkpoint").exists()


def test_the_process_that_has_it_knows_and_knows_no_more_after_an_error(model):
    assert not is_held_here(model)
    with contextlib.suppress(ZeroDivisionError), alone(model):
        assert is_held_here(model)
        raise ZeroDivisionError
    assert not is_held_here(model)


def test_one_that_another_process_has_is_not_held_here(model):
    with alone(model):
        [lock] = Path(model.location(model.checkpoint)).glob("*.lock")
        lock.write_text("process 0 on another machine")
        assert not is_held_here(model)
