"""`lowwater pipeline status` and `reset`, for pipelines whose checkpoints are there, with a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.fresh import fresh

from lowwater import Admin, NewTopic
from lowwater.cli.main import lowwater
from lowwater.spark.ages import Ages
from lowwater.testing import Broker
from lowwater.types import TopicPartition

FILE = """
name = "{group}"
checkpoint = "checkpoint"
kafka.bootstrap.servers = "{bootstrap}"
source.orders.topics = "{topic}"
sink.out = {{ from = "orders", format = "parquet", path = "out" }}
sink.other = {{ from = "orders", format = "noop" }}
"""
PATIENCE_S = 60


class Shop:
    """A pipeline of which one query has read a part of its topic, and the other nothing."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.topic, self.group = fresh("orders"), fresh("shop")
        self.file = str(folder / "shop.toml")
        with Admin(broker.bootstrap) as admin:
            admin.create_topics([NewTopic(self.topic, 2)]).checked()
        broker.fill(self.topic, 0, next=100)
        broker.fill(self.topic, 1, next=40)
        self.point_at(broker.bootstrap)
        self.commit({0: 60, 1: 40})
        offset = {
            "lowwater": 1,
            "lineage": "5f2c9a1e",
            "topics": {self.topic: {"at": {"0": 60, "1": 40}, "begin": {"0": 0, "1": 0}}},
        }
        for name in ("offsets", "commits"):
            (self.checkpoint / name).mkdir(parents=True)
        (self.checkpoint / "offsets" / "0").write_text(f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset)}')
        (self.checkpoint / "commits" / "0").write_text('v1\n{"nextBatchWatermarkMs":1772475212694}')

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint" / "out"

    @property
    def output(self) -> Path:
        return self.folder / "out"

    def write_output(self) -> None:
        self.output.mkdir()
        (self.output / "part-0.parquet").write_bytes(b"rows")

    def point_at(self, bootstrap: str) -> None:
        Path(self.file).write_text(FILE.format(group=self.group, topic=self.topic, bootstrap=bootstrap))

    def commit(self, offsets: dict[int, int]) -> None:
        with Admin(self.broker.bootstrap) as admin:
            named = {TopicPartition(self.topic, number): offset for number, offset in offsets.items()}
            admin.alter_group_offsets(self.group, named).checked()

    def committed(self) -> dict[int, int]:
        with Admin(self.broker.bootstrap) as admin:
            found = admin.group_offsets([self.group]).checked()[self.group]
        return {one.partition: committed.offset for one, committed in found.items()}


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Shop:
    return Shop(broker, tmp_path)


@pytest.fixture
def run(shop: Shop) -> Callable[..., Result]:
    return lambda command, *words: CliRunner().invoke(lowwater, ["pipeline", command, shop.file, *words])


def told(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_status_says_how_far_each_query_is(run):
    out, other = told(run("status", "--json"))
    assert (out["query"], out["batches"], out["behind"], out["behind_max"]) == ("out", 1, 40, 40)
    assert (out["watermark_ms"], out["state"]) == (1772475212694, "between batches")
    assert (other["query"], other["batches"], other["behind"], other["state"]) == ("other", 0, None, "never run")


def test_status_by_partition_has_the_groups_offsets_where_they_are_committed(run, shop):
    # The last query of a source commits, and that one has not run yet.
    rows = told(run("status", "--partitions", "--json"))
    assert [(row["partition"], row["offset"], row["end"], row["behind"]) for row in rows] == [
        (0, 60, 100, 40),
        (1, 40, 40, 0),
    ]
    assert {row["committed"] for row in rows} == {None}


def test_status_without_a_broker_says_what_the_checkpoint_says(run, shop):
    shop.point_at("127.0.0.1:1")
    done = run("status")
    assert done.exit_code == 0
    assert done.stdout.splitlines()[1].split()[:2] == ["out", "1"]
    assert done.stderr.count("127.0.0.1:1") == 1


def test_a_batch_that_is_not_finished_is_told(run, shop):
    (shop.checkpoint / "offsets" / "1").write_text("v1")
    assert told(run("status", "--json"))[0]["state"] == "batch 1 is not finished"


def test_reset_deletes_the_checkpoints_and_moves_the_group(run, shop):
    done = run("reset", "--to", "earliest", "--yes")
    assert done.exit_code == 0, done.output
    assert not shop.checkpoint.exists()
    assert shop.committed() == {0: 0, 1: 0}


def test_reset_leaves_a_group_alone_unless_it_is_told(run, shop):
    assert run("reset", "--yes").exit_code == 0
    assert shop.committed() == {0: 60, 1: 40}


def test_reset_of_a_group_goes_by_start_positions(run, shop):
    assert run("reset", "--to", "-10", "--yes").exit_code == 0
    assert shop.committed() == {0: 90, 1: 30}


@pytest.fixture
def two_sources(shop: Shop) -> str:
    """The shop with a second topic, read by a pattern; its name."""
    other = fresh("payments")
    with Admin(shop.broker.bootstrap) as admin:
        admin.create_topics([NewTopic(other, 1)]).checked()
    shop.broker.fill(other, 0, next=20)
    text = Path(shop.file).read_text().replace('from = "orders", format = "noop"', 'from = "more", format = "noop"')
    Path(shop.file).write_text(f'{text}source.more = {{ pattern = "{other}.*", group = "{shop.group}-more" }}\n')
    return other


def test_reset_takes_a_position_for_each_topic_of_several_sources(run, shop, two_sources):
    to = f"{shop.topic}=earliest,{two_sources}=15"
    assert run("reset", "--to", to, "--dry-run").exit_code == 0
    done = run("reset", "--to", to, "--yes")
    assert done.exit_code == 0, done.output
    assert f"{two_sources}-0 begins at 15" in done.output
    assert shop.committed() == {0: 0, 1: 0}


def test_no_group_is_moved_where_a_position_says_nothing_of_a_topic(run, shop, two_sources):
    assert run("reset", "--to", f"{shop.topic}=earliest", "--yes").exit_code == 2
    assert shop.committed() == {0: 60, 1: 40}
    assert shop.checkpoint.exists()


def test_a_slip_in_a_position_is_told_by_a_dry_run_too(run, shop, two_sources):
    done = run("reset", "--to", f"{shop.topic}s=earliest,latest", "--dry-run")
    assert done.exit_code == 2
    assert f"did you mean '{shop.topic}'?" in done.stderr


def test_reset_says_where_the_next_run_goes_on(run, shop):
    done = run("reset", "--dry-run")
    assert done.exit_code == 0, done.output
    assert f"goes on where the group {shop.group} is in {shop.topic}, with 40 records left" in done.stdout


@pytest.mark.parametrize("word", ["--dry-run", "--yes"])
def test_output_is_not_deleted_when_the_group_would_keep_it_from_being_written_again(run, shop, word):
    shop.write_output()
    done = run("reset", "--delete-output", word)
    assert done.exit_code == 2, done.output
    assert f"it reads orders from the group {shop.group}" in done.stderr
    assert "--to earliest" in done.stderr
    assert "--to stored" in done.stderr
    assert shop.output.exists()
    assert shop.checkpoint.exists()


def test_output_is_deleted_when_the_group_goes_back_or_is_said_to_stay(run, shop):
    shop.write_output()
    assert run("reset", "--delete-output", "--to", "stored", "--yes").exit_code == 0
    assert not shop.output.exists()
    assert shop.committed() == {0: 60, 1: 40}
    shop.write_output()
    assert run("reset", "--delete-output", "--to", "earliest", "--yes").exit_code == 0
    assert not shop.output.exists()
    shop.write_output()
    assert run("reset", "--delete-output", "--yes").exit_code == 0, "everything will be read again anyway"


def test_the_group_of_one_sink_is_moved_also_where_another_sink_commits(run, shop):
    shop.write_output()
    assert run("reset", "--sink", "out", "--delete-output", "--to", "earliest", "--yes").exit_code == 0
    assert shop.committed() == {0: 0, 1: 0}


def test_without_a_broker_output_stays_and_checkpoints_may_go(run, shop):
    shop.write_output()
    shop.point_at("127.0.0.1:1")
    assert run("reset", "--delete-output", "--yes").exit_code == 75
    assert shop.output.exists()
    done = run("reset", "--keep-output", "--yes")
    assert done.exit_code == 0, done.output
    assert "it is not known where the next run goes on" in done.stderr
    assert not shop.checkpoint.exists()


def test_nothing_goes_when_the_broker_cannot_be_reached(run, shop):
    shop.point_at("127.0.0.1:1")
    assert run("reset", "--to", "earliest", "--yes").exit_code == 75
    assert shop.checkpoint.exists()


def test_nothing_goes_in_a_dry_run_or_when_nobody_can_be_asked(run, shop):
    assert "delete the checkpoint of out" in run("reset", "--dry-run").stdout
    done = run("reset")
    assert done.exit_code == 2
    assert "there is no terminal to ask at: say --yes" in done.stderr
    assert "Do that?" not in done.output
    assert shop.checkpoint.exists()


def test_nothing_goes_when_the_answer_is_no(shop, monkeypatch):
    monkeypatch.setattr("lowwater.cli.pipeline_reset.need_terminal", lambda otherwise: None)
    done = CliRunner().invoke(lowwater, ["pipeline", "reset", shop.file], input="n\n")
    assert (done.exit_code, done.stderr.splitlines()[-1]) == (1, "lowwater: nothing was done")
    assert shop.checkpoint.exists()


def test_a_wrong_position_or_sink_is_a_wrong_command_line(run):
    assert run("reset", "--to", "yesteryear").exit_code == 2
    assert run("reset", "--sink", "nothing").exit_code == 2


# ---- lag in seconds


def test_the_age_of_unread_records_is_that_of_the_oldest(shop, writer):
    one, other = TopicPartition(shop.topic, 0), TopicPartition(shop.topic, 1)
    stamps = {TopicPartition(shop.topic, number): 10_000 * (number + 1) for number in range(2)}
    at = {one: 100, other: 40}
    for partition, stamp in stamps.items():
        writer.write(partition, [stamp])
    ages = Ages({"bootstrap.servers": shop.broker.bootstrap})
    try:
        ages.look(at, {one: 101, other: 41})
        ages.wait(PATIENCE_S)
        assert ages.oldest_ms == 10_000
        ages.look({one: 101, other: 40}, {one: 101, other: 41})
        ages.wait(PATIENCE_S)
        assert ages.oldest_ms == 20_000
        ages.look({one: 101, other: 41}, {one: 101, other: 41})
        ages.wait(PATIENCE_S)
        assert ages.oldest_ms is None
    finally:
        ages.close()
