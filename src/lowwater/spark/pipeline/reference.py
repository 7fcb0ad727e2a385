"""The keys of pipelines as docs/pipeline-keys.md: `python -m lowwater.spark.pipeline.reference`."""

from __future__ import annotations

from collections.abc import Iterator

from lowwater.config.reference import row
from lowwater.spark.pipeline.keys import TABLES, Key, Table

INTRODUCTION = """\
# Keys of a pipeline

What can stand in the file of a [pipeline](pipelines.md), table by table. A key that is not here is refused, and the
nearest one is named. Durations are written as `500ms`, `10s`, `5m`, `1h30m`, `7d`; start positions as
[start-positions.md](start-positions.md) has them. In every text `${NAME}` is a variable of the environment,
`${NAME:-default}` one with a default, and `$${` a plain `${`. This page is printed by
`python -m lowwater.spark.pipeline.reference`.
"""


def markdown() -> str:
    """The whole of docs/pipeline-keys.md."""
    return "\n".join([INTRODUCTION, *(line for table in TABLES for line in _section(table))])


def _section(table: Table) -> Iterator[str]:
    is_written = table.title.startswith("[") or " " not in table.title
    yield f"## `{table.title}`\n" if is_written else f"## {table.title[0].upper()}{table.title[1:]}\n"
    yield f"{table.help}\n"
    yield "| key | takes | default | what it does |"
    yield "|---|---|---|---|"
    yield from map(_row, table.keys)
    yield ""


def _row(key: Key) -> str:
    return row((f"`{key.name}`", key.takes, "*needed*" if key.is_required else key.default, key.help))


if __name__ == "__main__":
    print(markdown(), end="")
