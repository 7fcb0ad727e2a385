"""Group tests spend their time waiting; those marked `together` are all under way at once.

The first marked test of a session starts every selected one in a pool of threads, each on a stage of its own; each
test then waits for its own outcome, so that reports, timings aside, look as they always do.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.conformance.groups.stage import SharedHosts, Stage
from tests.conformance.under_test import UnderTest
from tests.conftest import PEERS

AT_ONCE = 6
_started = pytest.StashKey[dict[str, Future[None]]]()

together = pytest.mark.together


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if pyfuncitem.get_closest_marker("together") is None:
        return None
    session = pyfuncitem.session
    if _started not in session.stash:
        broker, shared = pyfuncitem.funcargs["group_broker"], pyfuncitem.funcargs["shared_hosts"]
        session.stash[_started] = _start_all(session, broker, shared)
    session.stash[_started][pyfuncitem.nodeid].result()
    return True


def _start_all(session: pytest.Session, broker: UnderTest, shared: SharedHosts) -> dict[str, Future[None]]:
    pool = ThreadPoolExecutor(AT_ONCE, "stage")
    session.config.add_cleanup(lambda: pool.shutdown(wait=False, cancel_futures=True))
    marked = [item for item in session.items if isinstance(item, pytest.Function) and _runs(item)]
    return {item.nodeid: pool.submit(_play, item, broker, shared) for item in marked}


def _runs(item: pytest.Function) -> bool:
    peers = [mark.args[0] for mark in item.iter_markers("peer")]
    return item.get_closest_marker("together") is not None and all(PEERS[peer]() is None for peer in peers)


def _play(item: pytest.Function, broker: UnderTest, shared: SharedHosts) -> None:
    parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
    with Stage(broker, shared) as stage:
        item.obj(stage=stage, **parameters)
