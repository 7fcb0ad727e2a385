"""Checkpoints, as Spark writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lowwater.spark.checkpoint import Checkpoint, CheckpointError, local_folder, read_checkpoint
from lowwater.types import TopicPartition


def offset(**topics: dict[str, int]) -> str:
    told = {"lowwater": 1, "lineage": "5f2c9a1e", "topics": {name: {"at": at} for name, at in topics.items()}}
    return json.dumps(told)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two finished micro-batches, and one that is planned."""
    for name in ("offsets", "commits"):
        (tmp_path / name).mkdir()
    (tmp_path / "metadata").write_text('{"id":"97c3e4ea"}')
    for number, at in enumerate((5, 9, 12)):
        lines = ["v1", '{"batchWatermarkMs":0}', offset(orders={"0": at}), offset(payments={"0": at + 1}), "-"]
        (tmp_path / "offsets" / str(number)).write_text("\n".join(lines))
    for number in range(2):
        (tmp_path / "commits" / str(number)).write_text(f'v1\n{{"nextBatchWatermarkMs":{number * 1000}}}')
    (tmp_path / "offsets" / ".2.crc").write_bytes(b"crc")
    os.utime(tmp_path / "commits" / "1", (1700000000.5, 1700000000.5))
    return tmp_path


def test_a_checkpoint_says_where_a_query_goes_on(folder):
    found = read_checkpoint(str(folder))
    assert found.at == {TopicPartition("orders", 0): 9, TopicPartition("payments", 0): 10}
    assert (found.query_id, found.finished, found.watermark_ms) == ("97c3e4ea", 1, 1000)
    assert found.finished_ms == 1700000000500
    assert found.is_there


def test_a_batch_that_is_planned_and_not_finished_is_cut_off(folder):
    assert read_checkpoint(str(folder)).is_cut_off
    (folder / "offsets" / "2").unlink()
    assert not read_checkpoint(str(folder)).is_cut_off


def test_no_watermark_is_none(folder):
    (folder / "commits" / "1").write_text('v1\n{"nextBatchWatermarkMs":0}')
    assert read_checkpoint(str(folder)).watermark_ms is None


def test_a_checkpoint_of_the_connector_is_understood(folder):
    (folder / "offsets" / "1").write_text('v1\n{}\n{"orders":{"0":4}}')
    assert read_checkpoint(str(folder)).at == {TopicPartition("orders", 0): 4}


def test_there_is_an_empty_one_where_nothing_was_run(tmp_path):
    found = read_checkpoint(str(tmp_path / "none"))
    assert found == Checkpoint()
    assert not found.is_there
    assert not found.is_cut_off


def test_what_cannot_be_understood_is_told_with_its_place(folder):
    (folder / "offsets" / "1").write_text('v1\n{}\n{"lowwater": 1}')
    with pytest.raises(CheckpointError, match=str(folder)):
        read_checkpoint(str(folder))


@pytest.mark.parametrize("location", ["s3a://bucket/checkpoint", "hdfs://host/a", "file://other/a"])
def test_a_checkpoint_on_another_machine_is_not_looked_into(location):
    with pytest.raises(CheckpointError, match="not on this machine"):
        read_checkpoint(location)


@pytest.mark.parametrize("location", ["/a b/c", "file:/a%20b/c", "file:///a%20b/c"])
def test_addresses_of_files_are_paths(location):
    assert local_folder(location) == Path("/a b/c")
