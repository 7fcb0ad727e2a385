"""What the page of pipelines says is so."""

import re
from pathlib import Path

import pytest

from lowwater.spark import Pipeline
from lowwater.spark.pipeline.failures import ExitCode
from lowwater.spark.pipeline.keys import TABLES
from lowwater.spark.pipeline.model import FORMATS
from lowwater.spark.pipeline.reference import markdown

DOCS = Path(__file__).resolve().parents[4] / "docs"
PAGE = (DOCS / "pipelines.md").read_text()
FILES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_page_of_keys_is_fresh():
    assert (DOCS / "pipeline-keys.md").read_text() == markdown(), "run `make docs`"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.title)
def test_every_key_is_documented(table):
    page = (DOCS / "pipeline-keys.md").read_text()
    assert [key.name for key in table.keys if f"| `{key.name}` |" not in page or not key.help] == []


@pytest.mark.parametrize("text", FILES, ids=range(len(FILES)))
def test_every_pipeline_of_the_page_is_right(text, monkeypatch):
    monkeypatch.setenv("REGISTRY_PASSWORD", "from the environment")
    assert Pipeline.parse(text).model.sinks


def test_every_format_and_exit_code_is_documented():
    assert [name for name in FORMATS if f"`{name}`" not in PAGE] == []
    assert [int(code) for code in ExitCode if f"| {int(code)} |" not in PAGE] == []


def test_every_call_of_a_pipeline_is_documented():
    calls = [name for name in dir(Pipeline) if not name.startswith("_")]
    assert [name for name in calls if not re.search(rf"[.`]{name}\b", PAGE)] == []
