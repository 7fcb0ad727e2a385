"""`lowwater spark losses` and `lowwater spark offsets`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.fresh import fresh

from lowwater.cli.main import lowwater
from lowwater.spark.ledger import enter
from lowwater.spark.loss_records import Loss
from lowwater.spark.offsets import Offset, advance
from lowwater.spark.options import SourceOptions
from lowwater.spark.wishes import Topics
from lowwater.types import TopicPartition

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


@pytest.fixture
def run() -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(lowwater, ["spark", *words])


# -- losses


@pytest.fixture
def ledger(broker) -> str:
    name = fresh("ledger")
    found = [
        Loss("orders", 0, 20, 60, "removed before it was read", 1_793_491_200_000, "5f2c9a1e", "the-id", "billing"),
        Loss("clicks", 3, 7, None, "the partition is not there any more", 1_793_491_300_000, "00000001"),
    ]
    enter({"bootstrap.servers": broker.bootstrap}, found, name)
    return name


def test_losses_are_listed(run, broker, ledger) -> None:
    done = run("losses", "-b", broker.bootstrap, "--ledger", ledger)
    assert done.exit_code == 0, done.output
    first, second = done.stdout.splitlines()[1:]
    assert first.split()[2:7] == ["orders", "0", "20", "60", "40"]
    assert first.split()[-3:] == ["billing", "5f2c9a1e", "the-id"]
    assert second.split()[2:7] == ["clicks", "3", "7", "–", "–"]


def test_losses_are_told_as_json(run, broker, ledger) -> None:
    done = run("losses", "-b", broker.bootstrap, "--ledger", ledger, "--json", "--topic", "orders")
    [found] = json.loads(done.stdout)
    assert (found["topic"], found["partition"], found["first"], found["behind"], found["count"]) == (
        "orders",
        0,
        20,
        60,
        40,
    )


@pytest.mark.parametrize("query", ["the-id", "5f2c9a1e", "billing"])
def test_losses_of_one_query(run, broker, ledger, query) -> None:
    done = run("losses", "-b", broker.bootstrap, "--ledger", ledger, "--json", "--query", query)
    assert [found["topic"] for found in json.loads(done.stdout)] == ["orders"]


def test_nothing_lost_is_said_so(run, broker) -> None:
    done = run("losses", "-b", broker.bootstrap, "--ledger", fresh("none"))
    assert done.exit_code == 0
    assert "nothing is known to be lost" in done.stderr


# -- checkpoints


def checkpoint(folder: Path, texts: list[str], finished: int) -> str:
    """As Spark writes it."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"the-id"}')
    for number, text in enumerate(texts):
        (folder / "offsets" / str(number)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{text}')
    for number in range(finished):
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return str(folder)


@pytest.fixture
def ours(tmp_path) -> str:
    start = Offset.initial({A0: 3, A1: 0}, {}, "5f2c9a1e")
    first = advance(start, {A0: 9, A1: 4}, {}, ids={})
    second = advance(first, {A0: 12, A1: 4}, {}, ids={})
    return checkpoint(tmp_path / "ours", [json.dumps(one.to_json()) for one in (first, second)], finished=1)


def test_offsets_of_a_checkpoint_are_those_behind_its_last_finished_batch(run, ours) -> None:
    done = run("offsets", ours, "--json")
    assert json.loads(done.stdout) == [
        {"topic": "a", "partition": 0, "offset": 9},
        {"topic": "a", "partition": 1, "offset": 4},
    ]
    assert "batch 1 is planned and not finished" in done.stderr


def test_they_become_what_the_kafka_connector_takes_and_what_we_take(run, ours) -> None:
    given = {"kafka.bootstrap.servers": "localhost:1", "subscribe": "a"}
    for option, form in (("startingOffsets", "kafka"), ("start", "start")):
        text = run("offsets", ours, "--as", form).stdout.strip()
        options = SourceOptions.parse({**given, option: text}, streaming=True)
        wishes = options.start.wishes([A0, A1])
        assert {one: str(wish) for one, wish in wishes.items()} == {A0: "9", A1: "4"}
        assert options.topics == Topics(names=("a",))


def test_a_checkpoint_of_the_connector_is_read_too(run, tmp_path) -> None:
    folder = checkpoint(tmp_path / "theirs", ['{"a":{"0":5,"1":7}}'], finished=1)
    assert run("offsets", folder, "--as", "kafka").stdout.strip() == '{"a":{"0":5,"1":7}}'


def test_a_folder_without_a_checkpoint_is_said_so(run, tmp_path) -> None:
    done = run("offsets", str(tmp_path))
    assert done.exit_code == 1
    assert "there is no checkpoint in" in done.output
