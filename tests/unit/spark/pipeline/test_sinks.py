"""What is told of a sink before its query is started."""

from types import SimpleNamespace

import pytest
from tests.unit.spark.pipeline.files import GOOD, model_of, spoilt

from lowwater.spark.pipeline.explaining import _written
from lowwater.spark.pipeline.problems import Report
from lowwater.spark.pipeline.refused import RefusedError
from lowwater.spark.pipeline.sinks import check_folders, writer_of
from lowwater.spark.pipeline.toml_places import Places

ROWS = SimpleNamespace(columns=["id", "amount", "day"])  # whoever writes them fails
MISSPELT = spoilt('partition_by = ["day"]', 'partition_by = "dy"', GOOD)
LINE = 1 + MISSPELT[: MISSPELT.index("partition_by")].count("\n")


def out_of(text):
    return model_of(text).sinks[0]


def test_folders_by_a_column_that_is_not_there_are_refused_before_anything_is_written():
    with pytest.raises(RefusedError, match=r"sink.out.partition_by: there is no column 'dy'; did you mean day\?"):
        writer_of(ROWS, model_of(MISSPELT), out_of(MISSPELT))


def test_where_no_column_is_near_all_are_told():
    sink = out_of(spoilt('"day"', '"who"'))
    with pytest.raises(RefusedError, match="there is no column 'who'; there are id, amount, day"):
        check_folders(ROWS, sink)


def test_folders_do_not_tell_capitals_from_small_letters():
    check_folders(ROWS, out_of(spoilt('"day"', '"Day", "ID"')))


def test_explain_tells_such_a_column_at_its_line():
    report = Report(Places(MISSPELT))
    text = spoilt('from = "rich"\nformat = "topic"', 'from = "paid"\nformat = "topic"', MISSPELT)
    assert _written(model_of(text), {"rich": ROWS}, report) == {}
    [problem] = report.problems
    assert (problem.line, problem.path) == (LINE, "sink.out.partition_by")
