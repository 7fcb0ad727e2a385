"""Time zones on the command line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from lowwater.cli.starting import LocalZone
from lowwater.positions.grammar import parse_start
from lowwater.positions.position import AtTime, Today, to_ms

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(("day", "hours"), [("2026-01-10", 1), ("2026-07-10", 2)])
def test_a_local_date_has_the_hour_of_its_season(day: str, hours: int) -> None:
    [choice] = parse_start(f"@{day}", LocalZone()).choices
    assert choice == AtTime(to_ms(datetime.fromisoformat(day).replace(tzinfo=UTC)) - hours * HOUR_MS)


@pytest.mark.parametrize(("now", "hours"), [("2026-01-10T12:00", 1), ("2026-07-10T12:00", 2)])
def test_a_local_day_begins_at_local_midnight(now: str, hours: int) -> None:
    noon_ms = to_ms(datetime.fromisoformat(now).replace(tzinfo=UTC))
    assert Today(LocalZone()).timestamp(noon_ms) == noon_ms - (12 + hours) * HOUR_MS
