"""The examples run, check themselves, and keep what they promise when they are interrupted."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from examples import exactly_once, idempotent_sink
from examples.day_of_orders import broker_with_orders, totals

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(
    path.stem for path in (ROOT / "examples").glob("*.py") if path.stem not in ("__init__", "day_of_orders")
)
PATIENCE_S = 100
ORDERS = 600
BATCH = 100


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_finds_what_it_expects(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [name])
    assert not importlib.import_module(f"examples.{name}").main()
    assert capsys.readouterr().out


class CrashError(Exception):
    pass


class Crashing:
    """A connection that breaks at a given one of its steps: what was not committed by then is gone."""

    def __init__(self, connection: Any, at_step: int) -> None:
        self._connection = connection
        self._steps_left = at_step

    def _step(self) -> None:
        self._steps_left -= 1
        if self._steps_left < 0:
            self._connection.rollback()
            raise CrashError

    def cursor(self) -> Any:
        self._step()
        return self._connection.cursor()

    def commit(self) -> None:
        self._step()
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker_with_orders(count=ORDERS) as bootstrap:
        yield bootstrap


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(tmp_path / "sales.db")) as connection:
        yield connection


def spent(connection: Any) -> dict[str, int]:
    cursor = connection.cursor()
    cursor.execute("SELECT customer, amount FROM spent")
    found = {customer: int(amount) for customer, amount in cursor.fetchall()}
    connection.rollback()
    return found


def copy_through_crashes(bootstrap: str, connection: Any, mark: str) -> int:
    """Every run gets a step further than the one before; how many crashed."""
    exactly_once.Sink(connection, mark)
    for crashes in range(200):
        try:
            exactly_once.copy(
                exactly_once.Sink(Crashing(connection, at_step=3 + crashes), mark), bootstrap, batch_size=BATCH
            )
        except CrashError:
            continue
        return crashes
    raise AssertionError("it never came to the end")


def test_exactly_once_holds_wherever_a_run_ends_in_sqlite(bootstrap, sqlite):
    assert copy_through_crashes(bootstrap, sqlite, "?") > 10
    assert spent(sqlite) == totals(ORDERS)


def test_of_two_processes_with_the_same_partitions_one_is_refused(bootstrap, sqlite, tmp_path):
    sink = exactly_once.Sink(sqlite)
    with contextlib.closing(sqlite3.connect(tmp_path / "sales.db")) as another:
        late = exactly_once.Sink(another)
        stale = late.stored()
        late.stored = lambda: stale
        exactly_once.copy(sink, bootstrap)
        with pytest.raises(exactly_once.OvertakenError):
            exactly_once.copy(late, bootstrap)
    assert spent(sqlite) == totals(ORDERS)


DIE = """
import os, signal, sqlite3, sys
from examples import exactly_once

class Dying(sqlite3.Connection):
    steps_left = int(sys.argv[3])

    def cursor(self, *rest):
        Dying.steps_left -= 1
        if not Dying.steps_left:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().cursor(*rest)

exactly_once.copy(exactly_once.Sink(sqlite3.connect(sys.argv[2], factory=Dying)), sys.argv[1], batch_size=100)
"""


@pytest.mark.parametrize("steps", [20, 35])
def test_exactly_once_holds_when_the_process_is_killed(steps, bootstrap, sqlite, tmp_path):
    command = [sys.executable, "-c", DIE, bootstrap, tmp_path / "sales.db", str(steps)]
    killed = subprocess.run(command, cwd=ROOT, timeout=PATIENCE_S)
    assert killed.returncode == -signal.SIGKILL
    sink = exactly_once.Sink(sqlite)
    assert 0 < sum(sink.stored().values()) < ORDERS
    exactly_once.copy(sink, bootstrap)
    assert spent(sqlite) == totals(ORDERS)


def test_a_record_that_comes_again_is_not_stored_again(bootstrap, sqlite):
    class DiesBehind(idempotent_sink.FailingSink):
        batches = 2

        def take(self, batch):
            self.batches -= 1
            (idempotent_sink.Sink if self.batches else idempotent_sink.FailingSink).take(self, batch)

    for _ in range(2):
        with pytest.raises(ConnectionError):
            idempotent_sink.copy(DiesBehind(sqlite), bootstrap, batch_size=BATCH)
    idempotent_sink.copy(idempotent_sink.Sink(sqlite), bootstrap, batch_size=BATCH)
    rows = sqlite.execute('SELECT topic, "partition", "offset" FROM orders').fetchall()
    assert len(rows) == len(set(rows)) == ORDERS
    assert dict(sqlite.execute("SELECT customer, sum(amount) FROM orders GROUP BY customer")) == totals(ORDERS)


# ---- drivers that mark values by %s, as PostgreSQL's do; and PostgreSQL itself, where it and its driver are installed


class ByFormat:
    """SQLite behind the face of a driver whose paramstyle is "format"."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.commit, self.rollback = connection.commit, connection.rollback

    def cursor(self) -> FormatCursor:
        return FormatCursor(self._connection.cursor())


class FormatCursor:
    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.fetchall, self.fetchone = cursor.fetchall, cursor.fetchone

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    def execute(self, statement: str, values: Any = ()) -> None:
        assert "?" not in statement
        self._cursor.execute(statement.replace("%s", "?"), values)

    def executemany(self, statement: str, rows: Any) -> None:
        assert "?" not in statement
        self._cursor.executemany(statement.replace("%s", "?"), rows)


def postgres_tools() -> Path | None:
    found = shutil.which("initdb") or next(iter(sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")))), "")
    return Path(found).parent if found and importlib.util.find_spec("psycopg") is not None else None


DATABASES = ["sqlite by %s"] + (["postgresql"] if postgres_tools() else [])


@contextlib.contextmanager
def postgres(tools: Path) -> Iterator[Any]:
    psycopg = importlib.import_module("psycopg")

    user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
    quiet: dict[str, Any] = {"user": user, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    with tempfile.TemporaryDirectory(prefix="postgres-") as home:
        if user is not None:
            shutil.chown(home, user)
        data = f"{home}/data"
        subprocess.run([tools / "initdb", "-D", data, "-U", "reader", "-A", "trust", "-N"], cwd=home, **quiet)
        options = f"-k {home} -c listen_addresses="
        subprocess.run([tools / "pg_ctl", "-D", data, "-o", options, "-w", "start"], cwd=home, **quiet)
        try:
            with psycopg.connect(host=home, user="reader", dbname="postgres") as connection:
                yield connection
        finally:
            subprocess.run([tools / "pg_ctl", "-D", data, "-m", "immediate", "stop"], cwd=home, **quiet)


@pytest.fixture(scope="module", params=DATABASES)
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    tools = postgres_tools()
    if request.param == "postgresql" and tools is not None:
        with postgres(tools) as connection:
            yield connection
        return
    with contextlib.closing(sqlite3.connect(tmp_path_factory.mktemp("by-format") / "sales.db")) as connection:
        yield ByFormat(connection)


def test_exactly_once_holds_wherever_a_run_ends_with_values_by_format(bootstrap, database):
    assert copy_through_crashes(bootstrap, database, "%s") > 10
    assert spent(database) == totals(ORDERS)


def test_a_record_that_comes_again_is_not_stored_again_with_values_by_format(database):
    with broker_with_orders(count=ORDERS) as bootstrap:
        with pytest.raises(ConnectionError):
            idempotent_sink.copy(idempotent_sink.FailingSink(database, "%s"), bootstrap, batch_size=BATCH)
        idempotent_sink.copy(idempotent_sink.Sink(database, "%s"), bootstrap, batch_size=BATCH)
    cursor = database.cursor()
    cursor.execute("SELECT customer, sum(amount) FROM orders GROUP BY customer")
    assert {customer: int(amount) for customer, amount in cursor.fetchall()} == totals(ORDERS)
