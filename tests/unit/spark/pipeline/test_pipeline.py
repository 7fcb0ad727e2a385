"""Pipelines as Python objects, and what they need of the machine."""

import pytest
from tests.unit.spark.pipeline.files import GOOD, spoilt

from lowwater.errors import ConfigError
from lowwater.spark import Pipeline, PipelineError
from lowwater.spark.pipeline.spark_settings import cores_of, delta_packages, master_of, spark_settings

VALUES = {
    "name": "orders",
    "checkpoint": "run",
    "kafka": {"bootstrap.servers": "x:1"},
    "source": {"orders": {"topics": ["orders"], "start": "earliest"}},
    "step": [{"name": "half", "python": lambda orders: orders, "from": "orders"}],
    "sink": {"out": {"from": "half", "format": "noop"}},
}


def test_a_pipeline_is_built_from_values(tmp_path):
    pipeline = Pipeline(VALUES, folder=tmp_path)
    assert pipeline.name == "orders"
    assert pipeline.model.kafka == {"bootstrap.servers": "x:1"}
    assert pipeline.model.location("run") == str(tmp_path / "run")
    assert repr(pipeline) == "Pipeline('orders', 1 sources, 1 sinks)"


def test_values_are_checked_as_a_file_is():
    wrong = VALUES | {"trigger": "often", "source": {"orders": {"topics": "orders", "strt": "earliest"}}}
    with pytest.raises(PipelineError) as refused:
        Pipeline(wrong)
    assert [problem.path for problem in refused.value.problems] == ["source.orders.strt", "trigger"] or [
        problem.path for problem in refused.value.problems
    ] == ["trigger", "source.orders.strt"]
    assert "source.orders.strt: there is no such key; did you mean start?" in str(refused.value)


def test_a_file_is_named_in_front_of_each_problem(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text(spoilt('format = "parquet"', 'format = "parket"'))
    with pytest.raises(PipelineError) as refused:
        Pipeline.load(file)
    assert str(refused.value).startswith(f"{file}:42:10: sink.out.format: 'parket' is not possible here")


def test_a_file_that_is_no_toml_is_named_too(tmp_path):
    file = tmp_path / "orders.toml"
    file.write_text("name = \n")
    with pytest.raises(PipelineError, match=r"orders\.toml:1:8: this is not TOML: Invalid value"):
        Pipeline.load(file)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: No such file"):
        Pipeline.load(tmp_path / "nowhere.toml")


def test_variables_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("BOOTSTRAP", "kafka.example:9093")
    assert Pipeline.parse(GOOD).model.kafka["bootstrap.servers"] == "kafka.example:9093"


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java that is never started."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    (tmp_path / "release").write_text('JAVA_VERSION="17.0.1"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


def test_files_and_packages_that_are_missing_are_told_with_their_lines(tmp_path, java):
    text = spoilt('schema = "order_id long, amount double"', 'schema_file = "orders.ddl"')
    text = spoilt('format = "parquet"', 'format = "delta"', text)
    with pytest.raises(PipelineError) as refused:
        Pipeline.parse(text, folder=tmp_path).check()
    told = {(problem.line, problem.path): problem.what for problem in refused.value.problems}
    assert told[17, "source.orders.decode.schema_file"] == "there is no file orders.ddl"
    assert told[42, "sink.out.format"] == "the package delta-spark is not installed"
    assert "cannot be imported" in told[36, "step[1].python"]


def test_a_schema_in_a_file_is_looked_at_before_spark_starts(tmp_path, java):
    (tmp_path / "orders.ddl").write_text("order_id lng")
    text = spoilt('schema = "order_id long, amount double"', 'schema_file = "orders.ddl"')
    with pytest.raises(PipelineError) as refused:
        Pipeline.parse(text, folder=tmp_path).check()
    told = {problem.path: (problem.line, problem.what) for problem in refused.value.problems}
    line, what = told["source.orders.decode.schema_file"]
    assert line == 17
    assert what.startswith("'lng' at character 10 is not a type")


def test_a_function_given_as_it_is_needs_no_module(tmp_path, java):
    Pipeline(VALUES, folder=tmp_path).check()


def test_without_java_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr("lowwater.spark.java._candidates", lambda environment: iter(()))
    with pytest.raises(PipelineError, match=r"pip install 'lowwater\[java\]'"):
        Pipeline(VALUES, folder=tmp_path).check()


def test_a_pipeline_on_somebody_else_s_spark_needs_no_java(tmp_path, monkeypatch):
    monkeypatch.setattr("lowwater.spark.java._candidates", lambda environment: iter(()))
    Pipeline(VALUES | {"remote": "sc://host", "checkpoint": "/x"}, folder=tmp_path).check()


# ---- what Spark is told


def model(**others):
    return Pipeline({**VALUES, **others}).model


@pytest.mark.parametrize(
    ("master", "told", "cores"),
    [
        ("local", "local[1,3]", 1),
        ("local[2]", "local[2,3]", 2),
        ("local[*]", "local[*,3]", 8),
        ("local[2,1]", "local[2,1]", 2),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]", None),
        ("spark://host:7077", "spark://host:7077", None),
    ],
)
def test_tasks_on_this_machine_have_more_than_one_attempt(master, told, cores):
    one = model(master=master, checkpoint="/x")
    assert (master_of(one), cores_of(one, 8)) == (told, cores)


def test_what_the_file_says_of_spark_wins():
    settings = spark_settings(model(master="local[2]", spark={"ui.enabled": True, "sql.shuffle.partitions": 7}), 8)
    assert (settings["spark.ui.enabled"], settings["spark.sql.shuffle.partitions"]) == ("true", "7")


def test_quick_checkpoints_are_for_files_on_this_machine():
    name = "spark.sql.streaming.checkpointFileManagerClass"
    assert name in spark_settings(model(), 8)
    assert name not in spark_settings(model(checkpoint="s3a://bucket/x"), 8)
    assert name not in spark_settings(model(checkpoint="/x", master="yarn"), 8)


def test_a_delta_sink_brings_the_settings_that_delta_wants():
    plain, delta = model(), model(sink={"out": {"from": "half", "format": "delta", "path": "/out"}})
    assert "spark.sql.extensions" not in spark_settings(plain, 8)
    assert "Delta" in spark_settings(delta, 8)["spark.sql.extensions"]
    assert "Delta" in spark_settings(delta, 8)["spark.sql.catalog.spark_catalog"]


def test_packages_of_the_file_are_found_for_delta_which_sets_its_own_in_their_place():
    sink = {"out": {"from": "half", "format": "delta", "path": "/out"}}
    assert delta_packages(model(sink=sink)) == []
    given = model(sink=sink, spark={"jars.packages": "a:b:1, c:d:2"})
    assert delta_packages(given) == ["a:b:1", "c:d:2"]
