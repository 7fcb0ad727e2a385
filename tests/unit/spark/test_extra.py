"""What is said where packages are missing, or too old."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pyspark
import pytest

from lowwater.client.loading import MissingExtraError
from lowwater.spark.extra import require_spark_extra


def test_nothing_is_said_where_all_is_there() -> None:
    require_spark_extra()


def test_an_old_spark_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyspark, "__version__", "4.1.4")
    with pytest.raises(MissingExtraError, match=r"this is pyspark 4\.1\.4, and 4\.2 is needed"):
        require_spark_extra()


def test_a_missing_package_of_the_workers_is_told_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lowwater\[spark\]'"):
        require_spark_extra()


def test_without_pyspark_the_extra_is_named_and_the_pure_parts_work() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "import lowwater.spark\n"
        "lowwater.spark.SourceOptions, lowwater.spark.Offset\n"
        "try:\n    lowwater.spark.LowwaterSource\n"
        "except ImportError as error:\n    print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert "pyspark is not installed; pip install 'lowwater[spark]'" in run.stdout
