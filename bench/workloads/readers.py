"""Rows to Arrow: Lowwater's reader beside kafkars, kafkarrow and confluent-kafka, all on one broker of ours."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from bench import layouts, readers
from bench.layouts import BALANCED, DISJOINT, SKEWED, Layout
from bench.plan import Run
from bench.readers import CONFLUENT, DROPPING, KAFKARROW, KAFKARS, LOWWATER, ReaderFailedError, Task
from bench.report import Row, number, times
from bench.rounds import Measured, Sample, interleave
from bench.subjects import Subject
from lowwater.wire.compression import LZ4, NONE

TEXT = "rows/s to Arrow, ordered by time and not, beside kafkars, kafkarrow and confluent-kafka"
HEADER = ("reader", "k rows/s", "CPU ns/row", "peak MB", "lowwater/peer", "CPU/peer's")
DEFAULTS = ", defaults"
SPEED_TARGET, SHAPE_TARGET = 6.0, 0.8
CHECK_SECONDS_MAX = 60.0
BYTES_SHARE = 2  # of large records there are fewer
SHAPE_ROUNDS = 3  # for each of the others: they take little time
SHAPE_BATCHES = 8  # of each partition at least: with two, hardly more than the beginning would be measured

# Record bytes, shape, codec; each with every number of partitions that is asked for, compressed ones with the first.
BOTH_WAYS = ((100, BALANCED, NONE), (1000, BALANCED, NONE), (100, BALANCED, LZ4))
ORDERED_ONLY = ((100, SKEWED, NONE), (100, DISJOINT, NONE))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A topic, and whether it is read in order of time."""

    layout: Layout
    ordered: bool

    def __str__(self) -> str:
        return f"{'ordered' if self.ordered else 'as they come'}: {self.layout}"

    @property
    def peers(self) -> list[str]:
        """With their settings tuned; in the first row of each kind also as they are out of the box."""
        tuned = [KAFKARS, KAFKARROW] if self.ordered else [CONFLUENT]
        is_first = (self.layout.record_bytes, self.layout.shape, self.layout.codec) == BOTH_WAYS[0]
        return tuned + [name + DEFAULTS for name in tuned if is_first and self.layout.partitions == 4]


def run(plan: Run) -> None:
    if not any(map(plan.wants, _titles(plan))):
        raise SystemExit(f"no table of readers has {plan.only!r} in its title; there are:\n" + "\n".join(_titles(plan)))
    broker = plan.fleet.lowwater()
    for layout, orders in _layouts(plan).items():
        wanted = [each for ordered in orders if plan.wants(str(each := Scenario(layout, ordered)))]
        if not wanted:
            continue
        with broker.topic(layout.partitions) as topic:
            layouts.fill(broker, topic, layout)
            for scenario in wanted:
                _cell(plan, broker, topic, scenario)
    for partitions in plan.size.reader_partitions:
        if plan.wants(_by_shape(partitions)):
            _compare_shapes(plan, broker, partitions)


def _titles(plan: Run) -> list[str]:
    cells = [str(Scenario(layout, ordered)) for layout, orders in _layouts(plan).items() for ordered in orders]
    return cells + [_by_shape(partitions) for partitions in plan.size.reader_partitions]


def _cell(plan: Run, broker: Subject, topic: str, scenario: Scenario) -> None:
    """When a reader fails in one, that is told, its target counts as missed, and the others go on."""
    try:
        measured = _measure(plan, broker, topic, scenario)
    except ReaderFailedError as failure:
        plan.report.note(f"FAILED   {scenario}: {failure}")
        plan.report.keep(str(scenario), {"failed": str(failure)})
        plan.report.target(f"{scenario}: failed", math.nan, SPEED_TARGET)
        return
    plan.report.keep(str(scenario), measured)
    _present(plan, scenario, measured)


def _layouts(plan: Run) -> dict[Layout, tuple[bool, ...]]:
    """What there is to read, and in which orders it is read."""
    found: dict[Layout, tuple[bool, ...]] = {}
    for partitions in plan.size.reader_partitions:
        for record_bytes, shape, codec in BOTH_WAYS + ORDERED_ONLY:
            if codec != NONE and partitions != plan.size.reader_partitions[0]:
                continue
            records = plan.size.reader_records // (1 if record_bytes == 100 else BYTES_SHARE)
            orders = (True, False) if (record_bytes, shape, codec) in BOTH_WAYS else (True,)
            found[Layout(records, record_bytes, partitions, shape, codec)] = orders
    return found


def _measure(plan: Run, broker: Subject, topic: str, scenario: Scenario) -> Measured:
    names = [LOWWATER, *scenario.peers, DROPPING]
    checked = _read(plan, broker, topic, scenario, LOWWATER, is_order_checked=True)
    if checked["rows"] != scenario.layout.records or (scenario.ordered and checked["out_of_order"]):
        wanted, seconds = scenario.layout.records, CHECK_SECONDS_MAX
        late = f"{checked['out_of_order']} of them out of order"
        raise ReaderFailedError(f"{checked['rows']} of {wanted} rows within {seconds:.0f} s, {late}")
    return interleave(
        {name: partial(_read, plan, broker, topic, scenario, name) for name in names}, plan.size.reader_rounds
    )


def _read(
    plan: Run, broker: Subject, topic: str, scenario: Scenario, name: str, *, is_order_checked: bool = False
) -> Sample:
    task = Task(
        reader=name.removesuffix(DEFAULTS),
        bootstrap=broker.bootstrap,
        topic=topic,
        partitions=scenario.layout.partitions,
        records=scenario.layout.records,
        ordered=scenario.ordered,
        tuned=not name.endswith(DEFAULTS),
        seconds_max=CHECK_SECONDS_MAX if is_order_checked else plan.size.reader_seconds_max,
        is_order_checked=is_order_checked,
    )
    return readers.run(task)


# -- tables and targets


def _present(plan: Run, scenario: Scenario, measured: Measured) -> None:
    plan.report.table(str(scenario), HEADER, [_row(name, measured) for name in measured.samples])
    tuned = [name for name in scenario.peers if not name.endswith(DEFAULTS)]
    what = f"{scenario}: lowwater / the best of {', '.join(tuned)}"
    plan.report.target(what, _ratio_to_best(measured, tuned), SPEED_TARGET)
    most = _ratio_to_best(measured, tuned, DROPPING)
    plan.report.note(f"a client that drops what it receives: {number(most)} × the best of them")


def _row(name: str, measured: Measured) -> Row:
    ours = name == LOWWATER
    return (
        name,
        number(measured.median(name, "rows_per_s") / 1000),
        number(measured.median(name, "cpu_ns_per_row")),
        number(measured.median(name, "peak_mb")),
        "" if ours else times(measured.ratios(LOWWATER, name, "rows_per_s")),
        "" if ours else f"{number(measured.ratio(LOWWATER, name, 'cpu_ns_per_row'))}×",
    )


def _ratio_to_best(measured: Measured, peers: Sequence[str], subject: str = LOWWATER) -> float:
    rounds = zip(measured.samples[subject], *(measured.samples[name] for name in peers), strict=True)
    return statistics.median(
        ours["rows_per_s"] / max(1.0, *(one["rows_per_s"] for one in theirs)) for ours, *theirs in rounds
    )


def _compare_shapes(plan: Run, broker: Subject, partitions: int) -> None:
    """Partitions that do not keep pace must not slow an ordered reader down: the shapes in turns, in each round."""
    title = _by_shape(partitions)
    with contextlib.ExitStack() as topics:
        works = {}
        for shape in (BALANCED, SKEWED, DISJOINT):
            layout = Layout(_shape_records(plan, partitions), 100, partitions, shape, NONE)
            topic = topics.enter_context(broker.topic(partitions))
            layouts.fill(broker, topic, layout)
            works[shape] = partial(_read, plan, broker, topic, Scenario(layout, ordered=True), LOWWATER)
        measured = interleave(works, SHAPE_ROUNDS * plan.size.reader_rounds)
    plan.report.keep(title, measured)
    for shape in (SKEWED, DISJOINT):
        what = f"ordered, {partitions} partitions: {shape} / {BALANCED}"
        plan.report.target(what, measured.ratio(shape, BALANCED, "rows_per_s"), SHAPE_TARGET)


def _shape_records(plan: Run, partitions: int) -> int:
    return max(plan.size.reader_records, partitions * SHAPE_BATCHES * layouts.BATCH_BYTES // 100)


def _by_shape(partitions: int) -> str:
    return f"ordered: 100 B, {partitions} partitions, by shape"
