"""Offsets as lines of CSV, as kafka-consumer-groups.sh writes and reads them: no names on top.

topic,partition,offset             of one group
group,topic,partition,offset       of several
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence

from lowwater.errors import ConfigError
from lowwater.types import TopicPartition

_OF_ONE, _OF_MANY = 3, 4


def to_csv(offsets: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """Without the group where there is only one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, found in offsets.items():
        lead = () if len(offsets) == 1 else (group,)
        writer.writerows((*lead, one.topic, one.partition, offset) for one, offset in sorted(found.items()))
    return text.getvalue()


def from_csv(text: str, groups: Sequence[str] = ()) -> dict[str, dict[TopicPartition, int]]:
    """By group. Lines without a group are those of the one that is named; ConfigError says which line is wrong."""
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if not any(cell.strip() for cell in row):
            continue
        group, one, offset = _read(number, row, groups)
        if one in found.setdefault(group, {}):
            raise ConfigError(f"line {number}: {one} of group {group!r} is there twice")
        found[group][one] = offset
    return found


def _read(number: int, row: list[str], groups: Sequence[str]) -> tuple[str, TopicPartition, int]:
    if len(row) not in (_OF_ONE, _OF_MANY):
        raise ConfigError(f"line {number}: expected topic,partition,offset or group,topic,partition,offset: {row}")
    if len(row) == _OF_ONE and len(groups) != 1:
        raise ConfigError(f"line {number} names no group: say which one, exactly one")
    group = row[0] if len(row) == _OF_MANY else groups[0]
    if groups and group not in groups:
        raise ConfigError(f"line {number} is about group {group!r}, which was not named")
    partition, offset = (_number(number, cell) for cell in row[-2:])
    return group, TopicPartition(row[-3], partition), offset


def _number(line: int, cell: str) -> int:
    digits = cell.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise ConfigError(f"line {line}: {cell!r} is not a number")
    return int(digits)
