"""Applying steps, and what is told of those that cannot be applied."""

import sys
from dataclasses import replace

import pytest
from pyspark import cloudpickle
from pyspark.errors import AnalysisException, ParseException
from tests.unit.spark.pipeline.files import GOOD, read, spoilt

from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.python_steps import check_functions
from lowwater.spark.pipeline.refused import RefusedError
from lowwater.spark.pipeline.steps import apply_step
from lowwater.spark.pipeline.toml_places import Places

UNKNOWN_COLUMN = """\
[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `amont` cannot be resolved. Did you mean `amount`?. SQLSTATE: \
42703; line 2 pos 5;
'Project [*]
"""
SYNTAX = """\

[PARSE_SYNTAX_ERROR] Syntax error at or near 'o'. SQLSTATE: 42601 (line 2, pos 12)

== SQL ==
SELECT o.order_id
"""


class Refusing:
    """A session whose SQL is refused."""

    def __init__(self, error):
        self.error = error

    def sql(self, text):
        raise self.error


def refused(error, text=GOOD):
    model, report = read(text)
    with pytest.raises(RefusedError) as caught:
        apply_step(Refusing(error), model, model.steps[0], {})
    report = Report(Places(text))
    caught.value.tell(report)
    [problem] = report.problems
    return problem.line, problem.column, problem.what


def test_what_spark_s_analysis_refuses_is_told_at_its_place_in_the_file():
    assert refused(AnalysisException(UNKNOWN_COLUMN)) == (
        30,
        6,
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `amont` cannot be resolved. Did you mean `amount`?",
    )


def test_what_spark_s_parser_refuses_is_told_at_its_place_in_the_file():
    assert refused(ParseException(SYNTAX)) == (30, 13, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'o'")


def test_an_error_without_a_place_is_told_at_the_query():
    assert refused(AnalysisException("[X] no")) == (28, 7, "[X] no")


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Writes a module beside the pipeline; what is imported is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(name, text):
        monkeypatch.delitem(sys.modules, name, raising=False)
        (tmp_path / f"{name}.py").write_text(text)

    yield write
    sys.modules.pop("enriching", None)


def problems_of_functions(folder, text=GOOD):
    model, report = read(text)
    check_functions(model, str(folder), report)
    return [(problem.line, problem.column, f"{problem.what}; {problem.hint}") for problem in report.problems]


def test_a_function_beside_the_file_is_found(tmp_path, modules):
    modules("enriching", "def enrich(paid, payments, *, days):\n    return paid\n")
    assert problems_of_functions(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def enrch(a, b, *, days): ...", "has no function 'enrich'; did you mean enrch?"),
        ("def enrich(a): ...", "it cannot be called with (paid, payments, days=…): too many positional arguments"),
        ("def enrich(a, b): ...", "got an unexpected keyword argument 'days'; it takes (a, b)"),
        (
            "import nowhere_to_be_found",
            "cannot be imported: ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("enrich = 3", "has no function 'enrich'"),
    ],
)
def test_what_is_wrong_with_a_function_is_told_before_spark_starts(tmp_path, modules, source, what):
    modules("enriching", source)
    [(line, column, told)] = problems_of_functions(tmp_path)
    assert (line, column) == (36, 10)
    assert what in told


def test_a_module_that_is_not_there_is_told(tmp_path):
    text = spoilt('"enriching:enrich"', '"not_there.at_all:enrich"')
    [(line, _, told)] = problems_of_functions(tmp_path, text)
    assert line == 36
    assert "the module not_there.at_all cannot be imported" in told


def test_a_function_that_raises_is_told_as_the_step(tmp_path, modules):
    modules("enriching", "def enrich(a, b, *, days):\n    raise KeyError('day')\n")
    model = replace(read(GOOD)[0], folder=str(tmp_path))
    with pytest.raises(RefusedError, match=r"step\[1\].python: the function raised KeyError: 'day'"):
        apply_step(None, model, model.steps[1], {"paid": 1, "payments": 2})


SPARK_REFUSES = """\
from pyspark.errors import AnalysisException

def enrich(a, b, *, days):
    return large(a)

def large(rows):
    raise AnalysisException({text!r})
"""


def test_what_spark_refuses_in_a_function_is_one_line_with_its_place(tmp_path, modules):
    modules("enriching", SPARK_REFUSES.format(text=UNKNOWN_COLUMN))
    model = replace(read(GOOD)[0], folder=str(tmp_path))
    with pytest.raises(RefusedError) as refused:
        apply_step(None, model, model.steps[1], {"paid": 1, "payments": 2})
    assert refused.value.what == (
        "the function raised AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `amont` cannot "
        f"be resolved. Did you mean `amount`? ({tmp_path}/enriching.py, line 7)"
    )


def test_modules_of_the_folder_travel_and_installed_ones_do_not(tmp_path, modules, monkeypatch):
    installed = tmp_path / "lib" / "site-packages"
    installed.mkdir(parents=True)
    (installed / "installed_below.py").write_text("")
    monkeypatch.syspath_prepend(str(installed))
    modules("cleaned_beside", "WORD = 1\n")
    modules("enriching", "import cleaned_beside, installed_below\n\ndef enrich(a, b, *, days):\n    return [days]\n")
    model = replace(read(GOOD)[0], folder=str(tmp_path))
    with pytest.raises(RefusedError):
        apply_step(None, model, model.steps[1], {"paid": 1, "payments": 2})
    travelling = cloudpickle.list_registry_pickle_by_value()
    assert {"enriching", "cleaned_beside"} <= travelling
    assert "installed_below" not in travelling


def test_a_function_that_cannot_be_called_has_no_line(tmp_path, modules):
    modules("enriching", "def enrich(a):\n    return a\n")
    model = replace(read(GOOD)[0], folder=str(tmp_path))
    with pytest.raises(RefusedError) as refused:
        apply_step(None, model, model.steps[1], {"paid": 1, "payments": 2})
    assert "unexpected keyword argument 'days'" in refused.value.what
    assert "line" not in refused.value.what


def test_a_function_has_to_return_a_frame(tmp_path, modules):
    modules("enriching", "def enrich(a, b, *, days):\n    return [days]\n")
    model = replace(read(GOOD)[0], folder=str(tmp_path))
    with pytest.raises(RefusedError, match="returned list, not a DataFrame"):
        apply_step(None, model, model.steps[1], {"paid": 1, "payments": 2})
