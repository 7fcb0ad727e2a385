"""The event time that each partition has reached, micro-batch by micro-batch: the pipeline's beside the plain split's.

Drawn from the checkpoints of the two queries and the times of the records they ended at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from examples.backfill.event_time import Panel, draw
from examples.orders.expected import Batch, Partition, Record
from examples.orders.reading import read_batches, read_logs
from examples.orders.sample import TOPICS

PLAIN = "plain-checkpoint"
HOUR_MS = 3_600_000

Logs = Mapping[Partition, Mapping[int, Record]]


def make_chart(bootstrap: str, run_dir: Path) -> str:
    """Writes event-time.svg into the folder of the run; a sentence that says what is in it."""
    logs = read_logs(bootstrap, TOPICS)
    panels = [
        panel("Split by offsets, as Spark does", read_batches(run_dir / PLAIN), logs),
        panel("Cut at one moment: this pipeline", read_batches(run_dir / "checkpoint" / "by_hour"), logs),
    ]
    (run_dir / "event-time.svg").write_text(draw(panels))
    apart, together = map(told_apart, panels)
    return f"partitions drift {apart} apart when split by offsets, {together} with cuts"


def panel(title: str, batches: Sequence[Batch], logs: Logs) -> Panel:
    partitions = sorted({one for batch in batches for one in batch.ranges})
    lines = {f"{topic}-{number}": reached((topic, number), batches, logs) for topic, number in partitions}
    drawn = Panel(title, "", lines, [batch.watermark_ms or None for batch in batches])
    return Panel(title, f"{told_apart(drawn)} apart", lines, drawn.watermarks)


def told_apart(drawn: Panel) -> str:
    hours = round(apart_ms(drawn) / HOUR_MS)
    return "less than an hour" if hours < 1 else f"up to {hours} hours"


def reached(one: Partition, batches: Sequence[Batch], logs: Logs) -> list[int | None]:
    """The newest record read after each batch."""
    newest: int | None = None
    found = []
    for batch in batches:
        start, end = batch.ranges.get(one, (0, 0))
        times = [logs[one][offset].timestamp_ms for offset in range(start, end) if offset in logs[one]]
        newest = max([*times, *([] if newest is None else [newest])], default=None)
        found.append(newest)
    return found


def apart_ms(drawn: Panel) -> int:
    """The most that two partitions with rows left were apart; who has read all cannot get on."""
    lines = list(drawn.lines.values())
    last = [max((each for each in line if each is not None), default=0) for line in lines]
    widest = 0
    for place in range(drawn.batches):
        known = [line[place] for line, end in zip(lines, last, strict=True) if line[place] not in (None, end)]
        ahead = [line[place] for line in lines if line[place] is not None]
        if known:
            widest = max(widest, max(ahead) - min(known))  # type: ignore[type-var, operator]
    return widest
