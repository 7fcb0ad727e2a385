"""What `lowwater groups watch` shows, and what its keys do. Pure: it is given a report, a size and the keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from lowwater.cli.groups.figures import GROUPS, PARTITIONS, group_row
from lowwater.cli.output import Column, Row
from lowwater.cli.printing import counted, printable

if TYPE_CHECKING:
    from lowwater.lag.report import Report

QUIT = frozenset({"q", "Q", "\x03", "\x04"})
_SEVERITY = {"STOP": 5, "STALL": 4, "REWIND": 3, "WARN": 2, None: 1, "OK": 0}
_LINES_AROUND = 4
_HELP = "q quit · sort: g group, l lag, t time lag, s status · r reverse · p partitions · ↑ ↓ scroll"

SORTS: dict[str, tuple[str, Callable[[Row], Any], bool]] = {
    "g": ("group", lambda row: _name(row), False),
    "l": ("lag", lambda row: -1 if row["lag"] is None else row["lag"], True),
    "t": ("time lag", lambda row: -1 if row["time_lag_ms"] is None else row["time_lag_ms"], True),
    "s": ("status", lambda row: _SEVERITY[row["status"]], True),
}
# What goes first where there is no room.
_EXPENDABLE = (
    "advice", "detail", "host", "catch_up_ms", "rate_in", "rate_out", "client_id", "end", "committed", "state",
    "members", "time_lag_ms",
)  # fmt: skip
_SENTENCES = ("advice", "detail")
_SENTENCE_MIN, _WIDEST, _GAP = 16, 40, 1
_STEPS = {"j": 1, "k": -1, "\x1b[B": 1, "\x1b[A": -1, "\x1b[6~": 10, "\x1b[5~": -10}


@dataclass(frozen=True, slots=True)
class View:
    """How it is sorted, what is shown, and how far it is scrolled."""

    sort: str = "s"
    is_reversed: bool = False
    shows_partitions: bool = False
    top: int = 0

    def pressed(self, key: str) -> View:
        """The next view; a key without meaning changes nothing."""
        if key in SORTS:
            return replace(self, sort=key, is_reversed=False, top=0)
        if key == "r":
            return replace(self, is_reversed=not self.is_reversed, top=0)
        if key == "p":
            return replace(self, shows_partitions=not self.shows_partitions, top=0)
        return replace(self, top=max(self.top + _STEPS.get(key, 0), 0))


def rendered(view: View, report: Report | None, trouble: str, width: int, height: int) -> Group:
    """A screen of that size. Where there is little room the columns that matter most are shown."""
    if report is None:
        return Group(Text("lowwater groups watch", style="bold"), Text("looking …"), Text(printable(trouble), "red"))
    rows = _sorted(view, _rows(view, report))
    room = max(height - _LINES_AROUND, 1)
    top = min(view.top, max(len(rows) - room, 0))
    shown = rows[top : top + room]
    return Group(
        _headline(view, report, len(rows), top, room),
        _table(_columns(view), _fitting(_columns(view), shown, width), shown),
        Text(printable(trouble or _faults(report)), style="red", overflow="ellipsis", no_wrap=True),
        Text(_HELP, style="dim", overflow="ellipsis", no_wrap=True),
    )


def _rows(view: View, report: Report) -> list[Row]:
    if not view.shows_partitions:
        return [group_row(group) for group in report.groups.values()]
    return [{"group": group.group, **one.document()} for group in report.groups.values() for one in group.partitions]


def _sorted(view: View, rows: Sequence[Row]) -> list[Row]:
    _, key, descends = SORTS[view.sort]
    by_name = sorted(rows, key=_name)
    return sorted(by_name, key=key, reverse=descends != view.is_reversed)


def _name(row: Row) -> tuple[Any, ...]:
    return row["group"], row.get("topic", ""), row.get("partition", 0)


def _columns(view: View) -> Sequence[Column]:
    return (GROUPS[0], *PARTITIONS) if view.shows_partitions else GROUPS


def _fitting(columns: Sequence[Column], rows: Sequence[Row], width: int) -> dict[str, int]:
    """Which columns there is room for, and how wide each is; sentences take what is left."""
    widths = {column.name: _natural(column, rows) for column in columns}
    for name in _EXPENDABLE:
        if sum(widths.values()) + _GAP * len(widths) <= width:
            break
        if name not in _SENTENCES:
            widths.pop(name, None)
        elif name in widths:
            left = width - sum(widths.values()) - _GAP * len(widths) + widths[name]
            if left < _SENTENCE_MIN:
                del widths[name]
            else:
                widths[name] = left
    return widths


def _natural(column: Column, rows: Sequence[Row]) -> int:
    longest = max((len(column.shown(row[column.name])) for row in rows), default=0)
    most = longest if column.name in _SENTENCES else _WIDEST
    return max(len(column.title), min(longest, most))


def _headline(view: View, report: Report, count: int, top: int, room: int) -> Text:
    at = datetime.fromtimestamp(report.at_ms / 1000, UTC)
    order = f"by {SORTS[view.sort][0]}{', reversed' if view.is_reversed else ''}"
    part = f", {top + 1} to {min(top + room, count)}" if count > room else ""
    what = counted(count, "partition") if view.shows_partitions else counted(count, "group")
    return Text(f"lowwater groups watch  {at:%H:%M:%S} UTC  {what}{part}  {order}", style="bold", no_wrap=True)


def _table(all_columns: Sequence[Column], widths: dict[str, int], rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", expand=False)
    columns = [column for column in all_columns if column.name in widths]
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.is_number else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=widths[column.name],
        )
    for row in rows:
        cells = ((column.shown(row[column.name]), column.style) for column in columns)
        table.add_row(*(Text(shown, style=style(row) if callable(style) else style) for shown, style in cells))
    return table


def _faults(report: Report) -> str:
    if not report.faults:
        return ""
    first = report.faults[0]
    more = f" (and {len(report.faults) - 1} more)" if len(report.faults) > 1 else ""
    return f"{first.where}: {first.what}{more}"
