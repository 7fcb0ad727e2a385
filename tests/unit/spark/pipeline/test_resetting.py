"""What a reset takes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowwater.errors import ConfigError
from lowwater.spark.checkpoint import CheckpointError
from lowwater.spark.pipeline.going_on import StoredStart, refuse_lost_output
from lowwater.spark.pipeline.pipeline import Pipeline
from lowwater.spark.pipeline.resetting import Output, Plan, plan, reset
from lowwater.types import TopicPartition

FILE = """
name = "shop"
checkpoint = "{folder}/checkpoint"
kafka.bootstrap.servers = "localhost:9092"
[source.orders]
topics = "orders"
decode = {{ format = "json", schema = "id long" }}
on_bad_row = {{ dead_letter = "dead" }}
group = "a"
[source.payments]
topics = "payments"
[sink.files]
from = "orders"
format = "parquet"
path = "{folder}/files"
[sink.copy]
from = "payments"
format = "topic"
topic = "copy"
encode = "json"
"""


@pytest.fixture
def model(tmp_path: Path):
    """Of a pipeline that has run."""
    for name in ("checkpoint/files", "checkpoint/copy", "checkpoint/dead-letters/orders", "files/_spark_metadata"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "files" / "part-0.parquet").write_bytes(b"rows")
    return Pipeline.parse(FILE.format(folder=tmp_path)).model


def folders(planned: Plan, tmp_path: Path) -> set[str]:
    return {str(each.folder.relative_to(tmp_path)) for each in planned.removals}


def test_checkpoints_of_all_queries_and_the_output_go(model, tmp_path):
    planned = plan(model, output=Output.DELETE)
    assert folders(planned, tmp_path) == {
        "checkpoint/files",
        "checkpoint/copy",
        "checkpoint/dead-letters/orders",
        "files",
    }
    reset(model, planned)
    assert not (tmp_path / "files").exists()
    assert not (tmp_path / "checkpoint" / "files").exists()


def test_files_that_are_kept_lose_the_list_that_would_hide_new_ones(model, tmp_path):
    reset(model, plan(model, output=Output.KEEP))
    assert (tmp_path / "files" / "part-0.parquet").read_bytes() == b"rows"
    assert not (tmp_path / "files" / "_spark_metadata").exists()
    assert not (tmp_path / "checkpoint" / "files").exists()


def test_something_has_to_be_said_about_files(model, tmp_path):
    with pytest.raises(ConfigError, match="--delete-output, or --keep-output"):
        plan(model, to="earliest")


def test_a_run_that_goes_on_where_its_group_is_is_not_said_to_write_rows_once_more(model, tmp_path):
    with pytest.raises(ConfigError, match=r"goes on where its groups are.*--delete-output --to earliest"):
        plan(model)
    with pytest.raises(ConfigError, match="would write its rows once more"):
        plan(model, to="earliest")


def test_sources_are_left_at_their_group_unless_something_else_is_said(model):
    assert [source.name for source in plan(model, output=Output.KEEP).from_stored] == ["orders", "payments"]
    for to in ("earliest", "stored"):
        assert not plan(model, output=Output.KEEP, to=to).from_stored
    assert not plan(model, output=Output.KEEP, to="stored").moves, "the group is there already"


def test_a_source_that_never_looks_at_its_group_is_not_left_there(tmp_path):
    text = FILE.replace('group = "a"', 'start = "-7d|earliest"').format(folder=tmp_path)
    assert [source.name for source in plan(Pipeline.parse(text).model).from_stored] == ["payments"]


def test_output_is_only_lost_to_the_groups_that_its_own_sink_reads(model):
    orders, payments = model.sources
    planned = plan(model, output=Output.DELETE)
    refuse_lost_output(model, planned, [StoredStart(payments, {TopicPartition("payments", 0): 7}, 0)])
    with pytest.raises(ConfigError, match=r"orders from the group a, .*--to earliest.*--to stored"):
        refuse_lost_output(model, planned, [StoredStart(orders, {TopicPartition("orders", 0): 7}, 0)])


def test_nothing_has_to_be_said_where_no_files_are(model, tmp_path):
    assert folders(plan(model, sinks=["copy"]), tmp_path) == {"checkpoint/copy"}


def test_a_second_reset_finds_nothing(model):
    reset(model, plan(model, output=Output.DELETE))
    assert plan(model).is_empty


def test_a_sink_that_is_not_there_is_refused(model):
    with pytest.raises(ConfigError, match="there are files, copy"):
        plan(model, sinks=["cpoy"])


def test_groups_are_moved_where_their_offsets_are_committed(model):
    moves = plan(model, output=Output.DELETE, to="-7d").moves
    assert [(move.source.name, move.source.group, move.to) for move in moves] == [
        ("orders", "a", "-7d"),
        ("payments", "shop", "-7d"),
    ]
    assert [move.source.name for move in plan(model, sinks=["copy"], to="earliest").moves] == ["payments"]


def test_a_position_names_topics_that_the_sources_of_the_chosen_queries_read(model):
    assert len(plan(model, output=Output.DELETE, to="orders=earliest,payments[0]=5,latest").moves) == 2
    with pytest.raises(ConfigError, match="names 'paymnts', which is not asked for; did you mean 'payments'"):
        plan(model, output=Output.DELETE, to="orders=earliest,paymnts=latest")
    with pytest.raises(ConfigError, match="names 'orders', which is not asked for"):
        plan(model, sinks=["copy"], to="orders=earliest,payments=latest")


def test_a_position_says_where_to_start_in_every_topic(model):
    with pytest.raises(ConfigError, match="does not say where to start in 'payments'"):
        plan(model, output=Output.DELETE, to="orders=earliest")


@pytest.mark.parametrize(
    ("reads", "taken", "refused"),
    [
        ('pattern = "orders.*"', "orders-eu=5,orders[1]=7,latest", "order-eu=5,latest"),
        ("partitions = { orders = [0, 2] }", "orders[2]=5,latest", "orders[1]=5,latest"),
    ],
)
def test_a_position_may_name_what_a_pattern_matches_and_partitions_that_are_read(tmp_path, reads, taken, refused):
    model = Pipeline.parse(FILE.format(folder=tmp_path).replace('topics = "orders"', reads)).model
    assert len(plan(model, to=taken).moves) == 2
    with pytest.raises(ConfigError, match="which is not asked for"):
        plan(model, to=refused)


def test_a_position_that_is_none_is_refused_before_anything_goes(model, tmp_path):
    with pytest.raises(ConfigError, match="yesteryear"):
        plan(model, output=Output.DELETE, to="yesteryear")


def test_a_checkpoint_on_another_machine_is_not_touched(tmp_path):
    model = Pipeline.parse(FILE.format(folder="s3a://bucket")).model
    with pytest.raises(CheckpointError, match="has to be deleted where it is"):
        plan(model, output=Output.DELETE)


def test_dead_letters_of_a_source_with_the_name_of_a_sink_are_not_its_own(tmp_path):
    for name in ("checkpoint/orders", "checkpoint/dead-letters/orders"):
        (tmp_path / name).mkdir(parents=True)
    text = FILE.replace("[sink.copy]", "[sink.orders]").format(folder=tmp_path)
    planned = plan(Pipeline.parse(text).model, sinks=["orders"])
    assert folders(planned, tmp_path) == {"checkpoint/orders"}
