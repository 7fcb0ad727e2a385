"""What the documents say is so: examples run, generated pages are fresh, links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lowwater.cli.reference import markdown

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples():
    for page in PAGES:
        for number, source in enumerate(EXAMPLE.findall(page.read_text()), start=1):
            yield pytest.param(source, id=f"{page.name}-{number}")


@pytest.mark.parametrize("source", list(examples()))
def test_an_example_runs_as_it_stands(source):
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_there_are_examples():
    assert next(examples(), None) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page):
    targets = [target for target in LINK.findall(page.read_text()) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


def test_the_page_of_the_command_line_is_fresh():
    assert (ROOT / "docs" / "cli.md").read_text() == markdown(), "run `make docs`"


def test_the_two_commands_of_the_readme_are_targets_of_make():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
