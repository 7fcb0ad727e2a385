"""The pytest plugin: `lowwater_broker` is a fresh broker for one test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lowwater.testing import Broker


@pytest.fixture
def lowwater_broker() -> Iterator[Broker]:
    """A broker on an ephemeral port, in a thread, with a temporary directory."""
    # Imported late: the plugin is loaded in every pytest run of whoever has the package installed.
    from lowwater.testing import Broker

    with Broker() as broker:
        yield broker
