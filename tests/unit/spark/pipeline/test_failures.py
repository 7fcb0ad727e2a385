"""The reason of a failure, found in what Spark says."""

import pytest

from lowwater.spark.decoding.errors import UndecodableRowError
from lowwater.spark.pipeline.failures import ExitCode, failure_of
from lowwater.spark.pipeline.secrets import Secrets

IN_A_TASK = """\
[STREAM_FAILED] Query [id = 5, runId = 6] terminated with exception: Job aborted due to stage failure: Task 0 in stage \
1.0 failed 3 times, most recent failure: Lost task 0.2 in stage 1.0 (TID 4) (127.0.0.1 executor driver): \
org.apache.spark.api.python.PythonException: [PYTHON_EXCEPTION] An exception was thrown from the Python worker: \
Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
ValueError: the first reason

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
lowwater.spark.decoding.errors.UndecodableRowError: 'orders' partition 0 offset 7: not JSON

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
SQLSTATE: XXKST
"""
OF_SPARK = """\
[STREAM_FAILED] Query [id = 5] terminated with exception: [CANNOT_LOAD_STATE_STORE] no state SQLSTATE: 58030
"""


CHANGED = """\
[STREAM_FAILED] Query [id = 5] terminated with exception: assertion failed: There are [2] sources in the checkpoint \
offsets and now there are [1] sources requested by the query. Cannot continue. SQLSTATE: XXKST
"""


def failure(text, *secrets):
    return failure_of(text, Secrets(secrets))


def test_the_innermost_reason_of_a_worker_is_told_in_one_line():
    told = failure(IN_A_TASK)
    assert told.what == "'orders' partition 0 offset 7: not JSON"
    assert told.is_of_python
    assert told.exit_code is ExitCode.FAILED
    assert told.detail == IN_A_TASK


def test_what_to_do_about_a_broken_row_is_told_by_the_keys_of_a_pipeline():
    error = UndecodableRowError("value", "orders", 0, 7, "not JSON")
    told = failure(IN_A_TASK.replace("'orders' partition 0 offset 7: not JSON", str(error)))
    assert told.what.startswith("the value of orders-0 at offset 7 cannot be decoded: not JSON; ")
    assert told.what.endswith('on_bad_row = "drop" or { dead_letter = "a topic" }')
    assert "onBad" not in told.what


@pytest.mark.parametrize("kind", ["ConnectError", "RequestTimeoutError", "DisconnectedError"])
def test_a_broker_that_cannot_be_reached_is_for_later(kind):
    text = IN_A_TASK.replace("lowwater.spark.decoding.errors.UndecodableRowError", f"lowwater.client.errors.{kind}")
    assert failure(text).exit_code is ExitCode.UNREACHABLE


def test_a_connect_server_that_is_not_there_is_for_later():
    told = failure("<_MultiThreadedRendezvous status = StatusCode.UNAVAILABLE details = no route>")
    assert told.exit_code is ExitCode.UNREACHABLE


def test_an_error_of_spark_alone_is_told_as_it_is():
    told = failure(OF_SPARK)
    assert not told.is_of_python
    assert told.what == "[CANNOT_LOAD_STATE_STORE] no state"


def test_an_inner_error_of_spark_goes_before_the_one_around_it():
    told = failure(OF_SPARK + "Caused by: org.apache.spark.SparkException: [TASK_WRITE_FAILED] disk full\n")
    assert told.what == "[TASK_WRITE_FAILED] disk full"


def test_a_text_of_another_kind_gives_its_first_line():
    assert failure("\n  something broke\nat x\n").what == "something broke"
    assert failure("").what == "Spark gave no reason"


def test_neither_text_has_a_secret():
    told = failure(IN_A_TASK.replace("not JSON", "password topsecret"), "topsecret")
    assert told.what.endswith("password [hidden]")
    assert "topsecret" not in told.detail
    assert "topsecret" not in repr(told)


def test_the_state_behind_an_error_of_spark_is_not_told():
    text = "[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Project [x]\n"
    assert failure(text).what == "[UNRESOLVED_COLUMN] A column `x` cannot be resolved"


def test_of_a_checkpoint_that_does_not_fit_any_more_the_way_out_is_told():
    told = failure(CHANGED).what
    assert "There are [2] sources in the checkpoint" in told
    assert told.endswith("`lowwater pipeline reset` lets it begin anew, with --sink one query alone")
    assert "reset" not in failure(OF_SPARK).what
