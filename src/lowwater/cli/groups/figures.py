"""How lag is shown: columns, and figures for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowwater.cli.output import Column, Row
from lowwater.cli.printing import UNKNOWN, counted, duration, number, printable

if TYPE_CHECKING:
    from lowwater.lag.report import GroupLag

STYLES = {"OK": "green", "WARN": "yellow", "REWIND": "yellow", "STALL": "red", "STOP": "red"}


def span(span_ms: int | None) -> str:
    return UNKNOWN if span_ms is None else "0" if span_ms == 0 else duration(span_ms)


def rate(per_second: float | None) -> str:
    if per_second is None:
        return UNKNOWN
    return f"{per_second:,.0f}" if abs(per_second) >= 10 or per_second == int(per_second) else f"{per_second:.1f}"


def _sentence(text: str | None) -> str:
    return "" if text is None else printable(text)


def _styled(row: Row) -> str:
    return STYLES.get(row["status"] or "", "")


STATUS = Column("status", "STATUS", style=_styled)
PARTITIONS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", str, is_number=True),
    Column("committed", "COMMITTED", number, is_number=True),
    Column("end", "END", number, is_number=True),
    Column("lag", "LAG", number, is_number=True),
    Column("time_lag_ms", "TIME LAG", span, is_number=True),
    Column("rate_in", "IN/S", rate, is_number=True, spare=2),
    Column("rate_out", "OUT/S", rate, is_number=True, spare=1),
    Column("catch_up_ms", "CATCHES UP IN", span, is_number=True, spare=3),
    STATUS,
    Column("client_id", "CLIENT", spare=4),
    Column("host", "HOST", spare=5),
    Column("detail", "DETAIL", _sentence),
)
GROUPS = (
    Column("group", "GROUP"),
    Column("state", "STATE"),
    Column("members", "MEMBERS", number, is_number=True, spare=3),
    Column("lag", "LAG", number, is_number=True),
    Column("time_lag_ms", "TIME LAG", span, is_number=True),
    Column("rate_in", "IN/S", rate, is_number=True, spare=2),
    Column("rate_out", "OUT/S", rate, is_number=True, spare=1),
    STATUS,
    Column("advice", "RECOMMENDED"),
)
FLAT = (
    Column("group", "GROUP"),
    Column("state", "STATE"),
    *PARTITIONS[:-1],
    Column("member_id", "MEMBER"),
    Column("start", "START"),
    Column("last_commit_ms", "LAST COMMIT"),
    Column("problem", "PROBLEM"),
    PARTITIONS[-1],
    Column("lost", "LOST"),
)
_OPTIONAL = ("rate_in", "rate_out", "catch_up_ms", "client_id", "host", "detail")


def group_row(group: GroupLag) -> Row:
    return {**group.document(), "advice": group.fault or group.recommendation.text}


def headline(group: GroupLag) -> str:
    """In a line: name, state, members, lag, status."""
    parts = [group.state or "state not known"]
    if group.members is not None:
        parts.append(counted(group.members, "member"))
    parts.append(f"lag {number(group.lag)}")
    if group.unknown:
        parts[-1] += f" without {counted(group.unknown, 'partition')} of unknown lag"
    if group.time_lag_ms is not None:
        parts.append(f"time lag {span(group.time_lag_ms)}")
    parts.append(group.status.value or "status not known")
    return f"{printable(group.group)}  {', '.join(parts)}"


def useful(columns: tuple[Column, ...], rows: Sequence[Row]) -> list[Column]:
    """Without columns of which nothing is known."""
    return [each for each in columns if each.name not in _OPTIONAL or any(row[each.name] is not None for row in rows)]
