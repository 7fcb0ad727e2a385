"""`lowwater pipeline check`: what schedulers and people are told before anything starts."""

import pytest
from click.testing import CliRunner

from lowwater.cli.main import lowwater
from lowwater.spark.pipeline.failures import ExitCode

FILE = """\
name = "orders"
checkpoint = "run"
[kafka]
bootstrap.servers = "x:1"
sasl.password = "${THE_PASSWORD:-topsecret}"
security.protocol = "SASL_SSL"
sasl.mechanism = "PLAIN"
sasl.username = "me"
[source.orders]
topics = "orders"
[[step]]
name = "some"
sql = "SELECT * FROM orders"
[sink.out]
from = "some"
format = "noop"
"""


@pytest.fixture
def check(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    def run(text, *options):
        (tmp_path / "orders.toml").write_text(text)
        return CliRunner().invoke(lowwater, ["pipeline", "check", *options, str(tmp_path / "orders.toml")])

    return run


def test_of_a_file_without_problems_it_says_what_was_not_looked_at(check):
    done = check(FILE)
    assert done.exit_code == ExitCode.DONE
    found, rest = done.output.split("; ")
    assert found.endswith("orders.toml: nothing wrong was found in orders without Spark")
    assert rest == "`lowwater pipeline explain` checks SQL and columns\n"


def test_an_outline_has_every_part_and_no_secret(check):
    done = check(FILE, "--outline")
    assert done.exit_code == ExitCode.DONE
    for part in (
        "source orders: orders, from stored|earliest, group orders",
        "step some: SQL",
        "sink out: some as noop",
    ):
        assert part in done.output
    assert "topsecret" not in done.output


def test_every_problem_has_a_line_of_its_own_and_the_exit_code_is_2(check):
    done = check(FILE.replace("FROM orders", "FROM order").replace('"noop"', '"nop"'))
    assert done.exit_code == ExitCode.WRONG_FILE
    lines = done.stderr.splitlines()
    assert [line.split(": ")[1].split("orders.toml")[1] for line in lines] == [":13:22", ":16:10"]
    assert "did you mean orders?" in lines[0]


def test_what_is_not_heeded_is_told_and_is_no_mistake(check):
    done = check(FILE.replace('topics = "orders"', 'topics = "orders"\noptions = { topic = "x" }'))
    assert done.exit_code == ExitCode.DONE
    assert "source.orders: topic option ignored in streaming queries" in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path):
    done = CliRunner().invoke(lowwater, ["pipeline", "check", str(tmp_path / "nowhere.toml")])
    assert done.exit_code == ExitCode.WRONG_FILE
    assert "nowhere.toml: No such file" in done.stderr


def test_signs_in_a_file_do_not_talk_to_the_terminal(check):
    done = check(FILE.replace('"noop"', '"no\\u001b[31m"'))
    assert "\x1b" not in done.stderr
