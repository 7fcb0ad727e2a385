"""Event time that micro-batches have reached, drawn: one panel for each way of cutting a backlog, as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from itertools import groupby

DAY_MS = 86_400_000
COLOURS = ("#0d9488", "#d97706", "#7c3aed", "#db2777", "#2563eb", "#65a30d", "#dc2626", "#0891b2", "#9333ea", "#ca8a04")
WIDTH, HEIGHT = 430, 300
LEFT, TOP, BOTTOM, GAP = 64, 64, 44, 28
LEGEND_LINE = 18
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #334155; }
.title { font-size: 15px; font-weight: 600; fill: #0f172a; }
.axis, .grid { fill: none; stroke: #cbd5e1; stroke-width: 1; }
.line { fill: none; stroke-width: 2; }
.mark { fill: none; stroke: #64748b; stroke-width: 1.5; stroke-dasharray: 5 4; }
.ground { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #cbd5e1; } .title { fill: #f1f5f9; } .ground { fill: #0f172a; } .axis, .grid { stroke: #334155; }
}
"""


@dataclass(frozen=True)
class Panel:
    """`lines` has, by name, the time reached after each micro-batch: None as long as nothing was read."""

    title: str
    note: str
    lines: Mapping[str, Sequence[int | None]]
    watermarks: Sequence[int | None] = field(default_factory=tuple)

    @property
    def batches(self) -> int:
        return max((len(line) for line in self.lines.values()), default=0)

    def times(self) -> Iterator[int]:
        for line in self.lines.values():
            yield from (each for each in line if each is not None)


def draw(panels: Sequence[Panel]) -> str:
    """All panels beside each other, over the same span of time."""
    times = [each for panel in panels for each in panel.times()]
    first, last = min(times), max(times)
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    width = LEFT + len(panels) * (WIDTH + GAP)
    legend_top = TOP + HEIGHT + BOTTOM
    height = legend_top + LEGEND_LINE * ((len(names) + 4) // 4) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
    ]
    for place, panel in enumerate(panels):
        parts += _panel(panel, LEFT + place * (WIDTH + GAP), first, last, colours, is_first=place == 0)
    return "\n".join([*parts, *_legend(colours, legend_top), "</svg>"]) + "\n"


def _panel(
    panel: Panel, left: int, first: int, last: int, colours: Mapping[str, str], *, is_first: bool
) -> Iterator[str]:
    def x(batch: float) -> float:
        return left + batch * WIDTH / max(panel.batches, 1)

    def y(time_ms: int) -> float:
        return TOP + HEIGHT - (time_ms - first) * HEIGHT / max(last - first, 1)

    yield f'<text class="title" x="{left}" y="24">{escape(panel.title)}</text>'
    yield f'<text x="{left}" y="44">{escape(panel.note)}</text>'
    for day_ms in _days(first, last):
        yield f'<path class="grid" d="M{left} {y(day_ms):.1f}h{WIDTH}"/>'
        if is_first:
            told = f"{datetime.fromtimestamp(day_ms / 1000, UTC):%-d %b}"
            yield f'<text x="{left - 8}" y="{y(day_ms) + 4:.1f}" text-anchor="end">{told}</text>'
    yield f'<path class="axis" d="M{left} {TOP}v{HEIGHT}h{WIDTH}"/>'
    middle = left + WIDTH / 2
    yield f'<text x="{middle}" y="{TOP + HEIGHT + 22}" text-anchor="middle">{panel.batches} micro-batches</text>'
    yield from (f'<path class="mark" d="{path}"/>' for path in _paths(panel.watermarks, x, y, first))
    for name, line in panel.lines.items():
        for path in _paths(line, x, y, first):
            yield f'<path class="line" stroke="{colours[name]}" d="{path}"/>'


def _paths(line: Sequence[int | None], x, y, first: int) -> Iterator[str]:  # type: ignore[no-untyped-def]
    """A path for each stretch that is known; times before all rows (a watermark that does not stand yet) are not."""
    points = [(place + 1, each) for place, each in enumerate(line)]
    for is_known, stretch in groupby(points, key=lambda point: point[1] is not None and point[1] >= first):
        if is_known:
            yield "M" + "L".join(f"{x(place):.1f} {y(each):.1f}" for place, each in stretch)


def _days(first: int, last: int) -> Iterator[int]:
    """Midnights, not more than some eight of them."""
    step = max(1, (last - first) // (8 * DAY_MS) + 1) * DAY_MS
    yield from range((first // DAY_MS + 1) * DAY_MS, last + 1, step)


def _legend(colours: Mapping[str, str], top: int) -> Iterator[str]:
    entries = [*((name, f'stroke="{colour}" class="line"') for name, colour in colours.items())]
    entries.append(("watermark", 'class="mark"'))
    for place, (name, drawn) in enumerate(entries):
        left, down = LEFT + (place % 4) * 220, top + LEGEND_LINE * (place // 4)
        yield f'<path {drawn} d="M{left} {down}h22"/>'
        yield f'<text x="{left + 30}" y="{down + 4}">{escape(name)}</text>'
