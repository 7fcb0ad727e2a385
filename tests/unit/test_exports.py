"""What `import lowwater` offers, and what it loads for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

import lowwater

NOT_LOADED = ("asyncio", "numba", "numpy", "pyarrow", "lowwater.client", "lowwater.broker", "lowwater.wire")


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
