"""The options of the source and the sink as docs/spark-options.md: `python -m lowwater.spark.reference`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from lowwater.config.reference import row
from lowwater.spark.kafka_options import SINK_REFUSALS, SOURCE_REFUSALS
from lowwater.spark.option_table import (
    DECODE_OPTIONS,
    KAFKA_OPTIONS,
    ORDER_OPTIONS,
    OWN_OPTIONS,
    SINK_OPTIONS,
    TIME_OPTIONS,
    Option,
    Where,
)

WIDTH = 120

INTRODUCTION = """\
# Options of the Spark source and sink

`spark.read.format("lowwater")`, `spark.readStream.format("lowwater")` and the two `write`s take these, with
`.option(name, value)`; upper and lower case make no difference. What the Kafka connector knows has the connector's
name, meaning and default. An option that nobody knows is passed over with a warning, which names the nearest one: so
the connector does, but silently. Any [setting of clients](client-settings.md) can be given with `kafka.` in front:
`kafka.security.protocol`, `kafka.isolation.level` (here `read_uncommitted` unless set, as the connector has it). This
page is printed by `python -m lowwater.spark.reference`.
"""

PARTS: tuple[tuple[str, tuple[Option, ...], str], ...] = (
    ("As the Kafka connector has them", KAFKA_OPTIONS, ""),
    ("Ours", OWN_OPTIONS, ""),
    ("Decoding", DECODE_OPTIONS, "With `decode`, bytes become columns; without it, none of the others may be given."),
    (
        "By time",
        TIME_OPTIONS,
        "How micro-batches are aligned by time is told in [Batches that end at one moment](spark-time.md).",
    ),
    (
        "In order",
        ORDER_OPTIONS,
        "What is promised, and what keeps it, is told in [Rows in the order of their times](spark-order.md).",
    ),
    (
        "Writing once",
        SINK_OPTIONS,
        "How the sink writes each row once is told in [Writing topics from Spark](spark-sink.md#exactly-once).",
    ),
)
REFUSED_TEXT = "These settings of Kafka's clients are refused, as the connector refuses them:"
_WHERE = {Where.BATCH: "batch", Where.STREAM: "stream", Where.SINK: "sink"}


def markdown() -> str:
    """The whole of docs/spark-options.md."""
    return "\n".join([INTRODUCTION, *_parts(), *_refused()])


def _parts() -> Iterator[str]:
    for title, options, note in PARTS:
        yield f"## {title}\n"
        if note:
            yield f"{textwrap.fill(note, WIDTH)}\n"
        yield "| name | for | takes | default | what it does |"
        yield "|---|---|---|---|---|"
        yield from map(_row, options)
        yield ""


def _row(option: Option) -> str:
    where = ", ".join(word for one, word in _WHERE.items() if one in option.where)
    also = "".join(f" Also called `{alias}`." for alias in option.aliases)
    default = "not set" if option.default is None else f"`{option.default}`"
    return row((f"`{option.name}`", where, option.takes.words, default, option.help + also))


def _refused() -> Iterable[str]:
    texts = {**SOURCE_REFUSALS, **SINK_REFUSALS}
    rows = (row((f"`kafka.{name}`", why)) for name, why in sorted(texts.items()))
    return ["## Refused\n", f"{REFUSED_TEXT}\n", "| name | why |", "|---|---|", *rows, ""]


if __name__ == "__main__":
    print(markdown(), end="")
