"""No secret of a pipeline is shown: by what explains it, by its values, or by errors."""

import pytest
from tests.unit.spark.pipeline.files import model_of, problems, read, spoilt

from lowwater.errors import ConfigError
from lowwater.spark import Pipeline
from lowwater.spark.checkpoint import CheckpointError
from lowwater.spark.pipeline.explaining import outline
from lowwater.spark.pipeline.run_lock import RunningError, alone
from lowwater.spark.session import SparkStartError

REMOTE = "sc://host:15002/;user_id=anna;token={token};x-api-key=k%2Fey-of-mine"
SECRET = "topsecret"
PRINTED = """\
name = "shop"
checkpoint = "/state/${FOLDER_TOKEN}"
remote = "sc://host/;token=${PLAIN}"
[kafka]
bootstrap.servers = "x:1"
[source.orders]
topics = "orders-${TOPIC_SECRET}"
group = "group-${GROUP_PASSWORD}"
[[step]]
name = "some"
sql = "SELECT * FROM orders WHERE key = '${SQL_PASSWORD}'"
[[step]]
name = "more"
python = "steps:more"
from = "some"
arguments = { login = "${PLAIN}", word = "argued" }
[sink.out]
from = "more"
format = "parquet"
path = "s3a://bucket/${PATH_SECRET}/out"
"""
VARIABLES = {
    "FOLDER_TOKEN": "secret-folder",
    "PLAIN": "secret-token",
    "TOPIC_SECRET": "secret-topic",
    "GROUP_PASSWORD": "secret-group",
    "SQL_PASSWORD": "secret-word",
    "PATH_SECRET": "secret-path",
}


def remote_text(remote):
    return spoilt(
        'checkpoint = "run', 'checkpoint = "/run', spoilt('master = "local[2]"', f'remote = "{remote}"')
    ).replace('"run/out"', '"/run/out"')


@pytest.mark.parametrize("token", [SECRET, "${PLAIN}", "${SPARK_TOKEN}"])
def test_parameters_of_a_remote_that_are_secret_are_kept_as_such(token):
    model = model_of(remote_text(REMOTE.format(token=token)), PLAIN=SECRET, SPARK_TOKEN=SECRET)
    assert model.remote is not None
    assert SECRET in model.remote
    shown = model.secrets.masked(f"{model.remote} {SECRET} k/ey-of-mine")
    assert shown == "sc://host:15002/;user_id=anna;token=[hidden];x-api-key=[hidden] [hidden] [hidden]"


def test_an_outline_shows_what_is_no_secret_alone():
    text = outline(model_of(PRINTED, **VARIABLES))
    assert "secret-" not in text
    for shown in (
        "on sc://host/;token=[hidden]",
        "source orders: orders-[hidden], from stored|earliest, group group-[hidden]",
        "sink out: more as parquet s3a://bucket/[hidden]/out",
        "checkpoint /state/[hidden]/out",
    ):
        assert shown in text


def test_values_show_no_remote_no_sql_and_no_arguments():
    shown = repr(model_of(PRINTED, **VARIABLES))
    assert "PythonStep(name='more', function='steps:more', inputs=('some',)" in shown
    for hidden in ("sc://", "secret-token", "SELECT", "argued"):
        assert hidden not in shown


def test_a_problem_does_not_show_the_token_of_a_remote():
    text = spoilt('trigger = "10s"', f'trigger = "{SECRET}"', remote_text(f"sc://x/;token={SECRET}"))
    told = problems(text)
    assert "trigger" in [path for _, _, path, _ in told]
    assert SECRET not in str(told)


def test_a_server_that_cannot_be_reached_is_named_without_its_token():
    model, _ = read(remote_text(f"sc://x/;token={SECRET}"))
    error = SparkStartError(model, f"no answer from sc://x/;token={SECRET}", None)
    assert str(error).startswith("no session of Spark on sc://x/;token=[hidden]: ")
    assert SECRET not in str(error)


FILES = """\
name = "shop"
checkpoint = "{checkpoint}"
kafka.bootstrap.servers = "x:1"
source.orders.topics = "orders"
sink.out = {{ from = "orders", format = "json", path = "{path}" }}
"""


@pytest.fixture
def pipeline(tmp_path, monkeypatch):
    monkeypatch.setenv("THE_SECRET", SECRET)

    def make(checkpoint="run", path="out-${THE_SECRET}"):
        return Pipeline.parse(FILES.format(checkpoint=checkpoint, path=path), folder=tmp_path)

    return make


def test_a_folder_that_has_been_written_is_named_without_secrets(pipeline, tmp_path):
    (tmp_path / f"out-{SECRET}").mkdir()
    with pytest.raises(ConfigError, match=r"has written files to .*/out-\[hidden\]"):
        pipeline().reset()


def test_a_folder_that_is_elsewhere_is_named_without_secrets(pipeline):
    there = pipeline(checkpoint="s3a://${THE_SECRET}/x")
    with pytest.raises(CheckpointError, match=r"^s3a://\[hidden\]/x/out is not on this machine"):
        there.reset()
    [query] = there.status().queries
    assert "s3a://[hidden]/x/out" in str(query.problem)


def test_a_run_beside_another_is_refused_without_secrets(pipeline):
    model = pipeline(checkpoint="run-${THE_SECRET}").model
    with alone(model), pytest.raises(RunningError, match=r"run-\[hidden\]/out"), alone(model):
        pass
