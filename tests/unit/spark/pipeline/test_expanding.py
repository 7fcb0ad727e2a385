"""Variables in the texts of a pipeline."""

import pytest

from lowwater.spark.pipeline.expanding import expanded
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.secrets import Secrets, is_secret
from lowwater.spark.pipeline.toml_places import Places


def put(text, **environment):
    report = Report()
    value = expanded({"x": text}, environment, report)["x"]
    return value, [problem.what for problem in report.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${A}", "1"),
        ("a${A}b${A}", "a1b1"),
        ("${A:-2}", "1"),
        ("${B:-2}", "2"),
        ("${EMPTY:-2}", "2"),
        ("${B:-}", ""),
        ("${B:-http://x:1/-}", "http://x:1/-"),
        ("$${A}", "${A}"),
        ("$A $ 5$", "$A $ 5$"),
    ],
)
def test_variables_are_put_in(text, value):
    assert put(text, A="1", EMPTY="") == (value, [])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("${B}", "the variable B is not set"),
        ("${EMPTY}", "the variable EMPTY is empty"),
        ("${env:B}", "'${env:B}' is not a variable"),
        ("${B", "'${B' is not a variable"),
        ("${}", "'${}' is not a variable"),
    ],
)
def test_what_cannot_be_put_in_is_told_and_stays(text, what):
    assert put(text, A="1", EMPTY="") == (text, [what])


def test_the_nearest_variable_is_named():
    report = Report()
    expanded("${BOOTSTRP}", {"BOOTSTRAP": "x"}, report)
    assert report.problems[0].hint == "did you mean BOOTSTRAP?"


def test_the_place_is_that_in_the_text():
    text = 'sql = """\nSELECT\n  ${a b}"""'
    report = Report(Places(text))
    expanded({"sql": "SELECT\n  ${a b}"}, {}, report)
    assert (report.problems[0].line, report.problems[0].column) == (3, 3)


def test_lists_and_tables_are_gone_through():
    assert expanded({"a": [{"b": "${A}"}, 3]}, {"A": "1"}, Report()) == {"a": [{"b": "1"}, 3]}


@pytest.mark.parametrize(
    ("document", "environment"),
    [
        ({"kafka": {"sasl": {"password": "hidden-one"}}}, {}),
        ({"kafka": {"sasl": {"jaas": {"config": "hidden-one"}}}}, {}),
        ({"spark": {"hadoop": {"fs": {"s3a": {"secret": {"key": "hidden-one"}}}}}}, {}),
        ({"name": "${DB_PASSWORD}"}, {"DB_PASSWORD": "hidden-one"}),
        ({"source": {"x": {"decode": {"registry": {"password": "${P}"}}}}}, {"P": "hidden-one"}),
    ],
)
def test_secrets_are_known_by_the_names_of_settings_and_of_variables(document, environment):
    report = Report()
    expanded(document, environment, report)
    assert report.secrets.masked("it is hidden-one.") == "it is [hidden]."


def test_what_is_called_like_a_secret_by_the_user_is_none():
    report = Report()
    expanded({"source": {"tokens": {"topics": "public"}}, "name": "secret-santa"}, {}, report)
    assert len(report.secrets) == 0


@pytest.mark.parametrize("name", ["ssl.key.password", "sasl.password", "sasl.jaas.config", "API_KEY", "ssl.key.pem"])
def test_names_of_secrets(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["ssl.key.location", "sasl.mechanism", "bootstrap.servers", "security.protocol"])
def test_names_that_are_none(name):
    assert not is_secret(name)


def test_longer_secrets_are_hidden_first_and_short_ones_only_alone():
    secrets = Secrets(["hunter", "hunter22", "ab"])
    assert secrets.masked("hunter22 hunter ab cab") == "[hidden] [hidden] ab cab"
    assert secrets.masked("ab") == "[hidden]"
    assert "hunter" not in repr(secrets)
