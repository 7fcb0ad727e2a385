"""What `import lowwater` offers, and what it loads for that."""

from __future__ import annotations

import builtins
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lowwater

NOT_LOADED = ("asyncio", "numba", "numpy", "pyarrow", "lowwater.client", "lowwater.broker", "lowwater.wire")


DOCS = Path(__file__).resolve().parents[2] / "docs"
_ERROR = re.compile(r"\b(?:[A-Z][a-z]+)+Error\b")
_IMPORT = re.compile(r"^from (lowwater[\w.]*) import (.+)$", re.MULTILINE)


def errors_in_docs() -> Iterator[tuple[str, str]]:
    """Each with where its page says that it is: there it is imported, or else it is one of `lowwater`."""
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text()
        homes = {name: home for home, names in _IMPORT.findall(text) for name in re.findall(r"\w+", names)}
        for name in sorted(set(_ERROR.findall(text))):
            if not hasattr(builtins, name):
                yield homes.get(name, "lowwater"), name


@pytest.mark.parametrize(("home", "name"), sorted(set(errors_in_docs())))
def test_every_error_that_is_documented_can_be_caught(home: str, name: str) -> None:
    assert issubclass(getattr(importlib.import_module(home), name), Exception)


@pytest.mark.parametrize("name", lowwater.__all__)
def test_everything_that_is_offered_is_there(name: str) -> None:
    assert getattr(lowwater, name) is not None
    assert name in dir(lowwater)


def test_what_is_not_offered_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Consumer'"):
        _ = lowwater.Consumer


def test_the_package_alone_loads_nothing() -> None:
    code = f"import sys, lowwater; print([name for name in {NOT_LOADED} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_a_blocking_reader_loads_no_asyncio() -> None:
    code = "import sys; from lowwater import read; print('asyncio' in sys.modules, 'numba' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False False"


def test_read_shows_its_options() -> None:
    import inspect

    for one in (lowwater.read, lowwater.Reader, lowwater.AsyncReader):
        names = list(inspect.signature(one).parameters)
        assert names[0] == "topics"
        assert {"start", "stop", "group", "order", "config"} <= set(names)
        assert "options" not in names
