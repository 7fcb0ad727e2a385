"""The file that keeps the sources of a pipeline from beginning new batches."""

from pathlib import Path

from lowwater.spark.pipeline.stop_file import StopFile


def test_it_is_there_from_the_stop_to_the_end_of_the_run():
    file = StopFile.of(object())
    assert not Path(file.name).exists()
    file.make()
    assert Path(file.name).is_file()
    file.remove()
    file.remove()
    assert not Path(file.name).exists()


def test_every_run_has_its_own():
    assert StopFile.of(object()).name != StopFile.of(object()).name


def test_there_is_none_for_a_server_that_may_be_elsewhere():
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})
    assert StopFile.of(remote()) is None
