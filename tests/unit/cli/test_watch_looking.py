"""The thread that looks for `lowwater groups watch`: what becomes of looks that fail, or do not end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from lowwater.cli.groups import watching
from lowwater.client.errors import ClientError
from lowwater.lag.observation import Observation

LIMIT_S = 60


def looking(look: Callable[[], Observation]) -> watching._Looking:
    def run(coroutine: Coroutine[Any, Any, Any]) -> Observation:
        coroutine.close()
        return look()

    connected: Any = SimpleNamespace(cluster=None, run=run)
    return watching._Looking(connected, None, 100, 0)


def test_a_look_that_hangs_does_not_keep_anybody_from_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_LAST_LOOK_S", 0.01)
    began, is_released = threading.Event(), threading.Event()

    def hang() -> Observation:
        began.set()
        is_released.wait(LIMIT_S)
        raise ClientError("the client was closed")

    with looking(hang) as hanging:
        assert began.wait(LIMIT_S)
    assert hanging._thread.is_alive()
    is_released.set()
    hanging._thread.join(LIMIT_S)
    assert not hanging._thread.is_alive()
    assert os.read(hanging.bell, 1) == b"!", "it could still ring"


def test_whatever_goes_wrong_is_shown_and_it_looks_again() -> None:
    looks = iter([RuntimeError("a bug"), ClientError("b:2 refuses connections"), Observation(5, {})])

    def look() -> Observation:
        found = next(looks, Observation(6, {}))
        if isinstance(found, Exception):
            raise found
        return found

    with looking(look) as trying:
        shown = []
        while trying.report is None:
            assert os.read(trying.bell, 1) == b"!"
            shown.append(trying.trouble)
    assert shown[:2] == ["looking failed: RuntimeError: a bug", "b:2 refuses connections"]
    assert trying.trouble == ""
