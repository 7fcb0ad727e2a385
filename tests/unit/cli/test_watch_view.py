"""What `lowwater groups watch` shows, and what its keys do."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lowwater.cli.groups.watch_view import View, rendered
from lowwater.lag.observation import Fault
from lowwater.lag.report import GroupLag, PartitionLag, Report
from lowwater.lag.rules import Status


def group(name: str, lag: int | None, time_lag_ms: int | None, status: Status) -> GroupLag:
    one = PartitionLag("orders", 0, 5, 9, lag, time_lag_ms, status)
    return GroupLag(name, "Stable", "classic", status, lag, time_lag_ms, (one,), members=1)


REPORT = Report(
    0,
    {
        each.group: each
        for each in (
            group("alpha", 5, 90_000, Status.OK),
            group("beta", None, None, Status.UNKNOWN),
            group("gamma", 900, 1_000, Status.WARN),
            group("delta", 7, 60_000, Status.STOP),
        )
    },
)


def shown(
    view: View, report: Report | None = REPORT, *, trouble: str = "", width: int = 160, height: int = 24
) -> list[str]:
    console = Console(width=width, height=height, file=io.StringIO(), markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(rendered(view, report, trouble, width, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def names(view: View, **more: int) -> list[str]:
    _, _, *rows = shown(view, **more)  # type: ignore[arg-type]
    return [row.split()[0] for row in rows if row and row.split()[0] in REPORT.groups]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ("", ["delta", "gamma", "beta", "alpha"]),
        ("l", ["gamma", "delta", "alpha", "beta"]),
        ("t", ["alpha", "delta", "gamma", "beta"]),
        ("g", ["alpha", "beta", "delta", "gamma"]),
        ("gr", ["gamma", "delta", "beta", "alpha"]),
        ("lr", ["beta", "alpha", "delta", "gamma"]),
        ("lrs", ["delta", "gamma", "beta", "alpha"]),
    ],
)
def test_keys_sort(keys: str, order: list[str]) -> None:
    view = View()
    for key in keys:
        view = view.pressed(key)
    assert names(view) == order


def test_partitions_are_shown_when_asked_for() -> None:
    view = View().pressed("p")
    assert "PARTITION" in shown(view)[1]
    assert "4 partitions" in shown(view)[0]
    assert "PARTITION" not in shown(view.pressed("p"))[1]


def test_what_does_not_fit_is_scrolled() -> None:
    view = View(sort="g")
    assert names(view, height=6) == ["alpha", "beta"]
    assert names(view.pressed("\x1b[B"), height=6) == ["beta", "delta"]
    far = view.pressed("\x1b[6~").pressed("j")
    assert names(far, height=6) == ["delta", "gamma"]
    assert "4 groups, 3 to 4" in shown(far, height=6)[0]
    assert names(far.pressed("\x1b[5~").pressed("k").pressed("k"), height=6) == ["alpha", "beta"]
    assert view.pressed("x") == view


def test_a_narrow_terminal_shows_every_group_in_one_line() -> None:
    lines = shown(View(sort="g"), width=40)
    assert [line[:3] for line in lines[2:6]] == ["alp", "bet", "del", "gam"]
    assert all(len(line) <= 40 for line in lines)
    assert lines[1].split() == ["GROUP", "MEMBERS", "LAG", "TIME", "LAG", "STATUS"]


def test_faults_and_names_are_shown_without_control_characters() -> None:
    evil = group("\x1b[31mred", 1, 1, Status.OK)
    report = Report(0, {evil.group: evil}, (Fault("broker 2", "gone\x07"), Fault("x", "y")))
    text = "\n".join(shown(View(), report))
    assert "\\x1b[31mred" in text
    assert "broker 2: gone\\x07 (and 1 more)" in text
    assert "\x07" not in text


def test_before_the_first_look_it_says_that_it_looks() -> None:
    assert shown(View(), None)[1] == "looking …"
    assert "no broker" in "\n".join(shown(View(), REPORT, trouble="no broker"))
