"""What the documents say is so: examples run, generated pages are fresh, links lead somewhere, nothing is left out."""

import inspect
import re
import subprocess
import sys
from datetime import UTC
from pathlib import Path

import pytest

import lowwater
from lowwater.cli.reference import markdown
from lowwater.client import reference as client_reference
from lowwater.client.config import CLIENT_SETTINGS
from lowwater.client.settings import ALIASES, CALLABLES, IGNORED, REFUSED
from lowwater.positions.grammar import FORMS, parse_starts

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples():
    for page in PAGES:
        for number, source in enumerate(EXAMPLE.findall(page.read_text()), start=1):
            yield pytest.param(source, id=f"{page.name}-{number}")


@pytest.mark.parametrize("source", list(examples()))
def test_an_example_runs_as_it_stands(source):
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert next(examples(), None) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    missing = [
        f"{target}#{place}" for target, place in LINK.findall(page.read_text()) if not leads(page, target, place)
    ]
    assert not missing


def leads(page, target, place):
    if "://" in target:
        return True
    there = page.parent / target if target else page
    return there.exists() and (not place or place in anchors(there))


def anchors(page):
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_page_of_the_command_line_is_fresh():
    assert (ROOT / "docs" / "cli.md").read_text() == markdown(), "run `make docs`"


def test_the_page_of_client_settings_is_fresh():
    assert (ROOT / "docs" / "client-settings.md").read_text() == client_reference.markdown(), "run `make docs`"


# ---- nothing is left out


def documented(page):
    """Words in code spans, and the parts of those that have points in them."""
    spans = " ".join(re.findall(r"`([^`\n]+)`", (ROOT / "docs" / page).read_text()))
    return set(re.findall(r"[\w.]+", spans)).union(re.findall(r"\w+", spans))


def test_every_setting_of_clients_is_documented():
    names = {setting.name for setting in CLIENT_SETTINGS}.union(ALIASES, CALLABLES, IGNORED, REFUSED)
    assert names - documented("client-settings.md") == set()


def parameters(function):
    return set(inspect.signature(function).parameters) - {"self", "args", "kwargs"}


def members(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("page", "face"),
    [
        ("reader.md", lowwater.read),
        ("reader.md", lowwater.Reader),
        ("reader.md", lowwater.AsyncReader),
        ("reader.md", lowwater.ConsumerManager),
        ("producer.md", lowwater.Producer),
        ("producer.md", lowwater.AsyncProducer),
        ("producer.md", lowwater.end_transaction),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_option_is_documented(page, face):
    assert parameters(face) - documented(page) - {"options"} == set()


# Of Reader and AsyncReader, for those who build on them.
INNER = {"asked_for", "begin"}


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        ("reader.md", lowwater.Reader),
        ("reader.md", lowwater.AsyncReader),
        ("producer.md", lowwater.Producer),
        ("producer.md", lowwater.AsyncProducer),
        ("admin.md", lowwater.Admin),
        ("admin.md", lowwater.AsyncAdmin),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_every_call_and_its_options_are_documented(page, kind):
    known = documented(page)
    assert members(kind) - known - INNER == set()
    calls = [getattr(kind, name) for name in members(kind) - INNER if callable(getattr(kind, name))]
    options = {name for call in calls for name in keyword_only(call)}
    assert options - known == set()


def keyword_only(call):
    kept = inspect.Parameter.KEYWORD_ONLY
    return {name for name, one in inspect.signature(call).parameters.items() if one.kind is kept}


def test_every_name_that_lowwater_exports_is_documented():
    pages = ("reader.md", "producer.md", "admin.md")
    text = " ".join((ROOT / "docs" / page).read_text() for page in pages)
    missing = [name for name in lowwater.__all__ if not re.search(rf"\b{name}\b", text)]
    assert missing == ["__version__"]


def test_every_start_position_of_the_page_can_be_read_and_none_is_left_out():
    cells = re.findall(r"^\| (`.+?) \| ", (ROOT / "docs" / "start-positions.md").read_text(), re.MULTILINE)
    written = [form.replace("\\|", "|") for cell in cells for form in re.findall(r"`([^`]+)`", cell)]
    for form in written:
        parse_starts(form, zone=UTC)
    assert {form for forms, _ in FORMS for form in forms.split(", ")} == set(written)


def test_the_two_commands_of_the_readme_are_targets_of_make():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
