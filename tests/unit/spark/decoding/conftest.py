"""On a fresh machine the kernels are compiled by the first test that needs them, which takes its time."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILING_TIMEOUT_S = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(COMPILING_TIMEOUT_S))
