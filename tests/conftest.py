"""What every suite shares: the broker under test, and the peers that may be missing on a user's machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from peers import places  # noqa: E402
from tests.conformance.under_test import UnderTest, running  # noqa: E402

from lowwater.spark.java import JavaError, find_java  # noqa: E402

MISSING_PEER = "missing peer"
WHOLE_SUITES = {"conformance", "spark"}
# What takes long and stays whole begins first; the many small files at the end leave no worker idle for long.
LONGEST_FIRST = ("spark", "conformance", "crash", "integration", "sim", "reader", "model", "fuzz")

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("lowwater", deadline=None)
hypothesis.settings.load_profile("lowwater")


def _missing_package(name: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        return None if importlib.util.find_spec(name) else f"the Python package {name} is not installed"

    return missing


def _missing_java() -> str | None:
    try:
        find_java()
    except JavaError as error:
        return str(error)
    return None


PEERS: dict[str, Callable[[], str | None]] = {
    "kafka": places.missing_kafka,
    "kafka-2.8": places.missing_old_kafka,
    "streams": places.missing_streams,
    "connector": places.missing_connector,
    "kafkajs": places.missing_kafkajs,
    "kcat": places.missing_kcat,
    "chromium": places.missing_chromium,
    "confluent": _missing_package("confluent_kafka"),
    "kafka_python": _missing_package("kafka"),
    "aiokafka": _missing_package("aiokafka"),
    "kio": _missing_package("kio"),
    "java": _missing_java,
    "lowwater": _missing_package("lowwater"),
}


def require_peer(name: str) -> None:
    """Skip the running test when a peer is missing; fail it where peers are required (LOWWATER_REQUIRE_PEERS=1)."""
    problem = PEERS[name]()
    if problem is None:
        return
    if os.environ.get("LOWWATER_REQUIRE_PEERS") == "1":
        pytest.fail(f"{MISSING_PEER} {name}: {problem}", pytrace=False)
    pytest.skip(f"{MISSING_PEER} {name}: {problem}")


class Peers:
    """Handed out by the fixture `peers`: `peers.require("kafka")`."""

    libs = places.KAFKA_LIBS

    @staticmethod
    def require(name: str) -> None:
        require_peer(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--against",
        choices=("lowwater", "kafka", "kafka-2.8"),
        default="lowwater",
        help="the broker that the conformance suites talk to: ours, Apache Kafka (the oracle), or an old one",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "peer(name): needs another broker or client, see `make peers`")
    config.addinivalue_line("markers", "together: a group test that waits beside others")
    config.addinivalue_line("markers", "only_against(name): meaningful for one of the two brokers only")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(_suite_of(item.nodeid)))


def _suite_of(nodeid: str) -> str:
    """`tests/spark/test_sink.py::test_…` is of `spark`."""
    return nodeid.split("/")[1]


def _turn(suite: str) -> int:
    return LONGEST_FIRST.index(suite) if suite in LONGEST_FIRST else len(LONGEST_FIRST)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With several workers a file stays whole, and so do the suites that share brokers, clients or a Spark session."""
    from xdist.scheduler import LoadScopeScheduling

    class Suites(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            suite = _suite_of(nodeid)
            return suite if suite in WHOLE_SUITES else nodeid.split("::", 1)[0]

    config.option.loadscopereorder = False  # by number of tests: long files of one test would begin last
    return Suites(config, log) if config.getoption("dist") == "loadscope" else None


def _pythons_own_ctrl_c() -> None:
    """Some tests send Ctrl-C, to themselves and to what they start. PySpark leaves a handler of its own behind, and a
    shell that runs the tests in the background has them and their children ignore it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    _pythons_own_ctrl_c()
    for mark in item.iter_markers("only_against"):
        if mark.args[0] != item.config.getoption("--against"):
            pytest.skip(f"meaningful only with --against={mark.args[0]}")
    for mark in item.iter_markers("peer"):
        require_peer(mark.args[0])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what was not tried: a green run without its peers proves less."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if MISSING_PEER in str(report.longrepr)]
    if not skipped:
        return
    terminalreporter.section("PEERS WERE MISSING", sep="!", red=True, bold=True)
    reasons: dict[str, list[str]] = {}
    for report in skipped:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reasons.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    for reason, tests in sorted(reasons.items()):
        terminalreporter.write_line(f"{reason}: {len(tests)} tests did not run", red=True)
        for test in tests:
            terminalreporter.write_line(f"    {test}")


@pytest.fixture(scope="session")
def peers() -> Peers:
    return Peers()


@pytest.fixture(scope="session")
def against(pytestconfig: pytest.Config) -> str:
    chosen: str = pytestconfig.getoption("--against")
    if chosen != "lowwater":
        require_peer(chosen)
    return chosen


@pytest.fixture(scope="session")
def broker(against: str) -> Iterator[UnderTest]:
    """The broker under test, one for the whole session: tests keep to topics of their own."""
    with running(against) as under_test:
        yield under_test


@pytest.fixture
def own_broker(against: str) -> Iterator[Callable[..., UnderTest]]:
    """Starts brokers that only this test uses: `own_broker({"num.partitions": "3"})`."""
    with contextlib.ExitStack() as stack:
        yield lambda overrides=None: stack.enter_context(running(against, overrides))
