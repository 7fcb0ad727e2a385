"""`python -m examples.orders.show [RUN_DIR]`: a look at the result of `make run`."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from examples.orders.expected import Hour, Sums
from examples.orders.reading import read_hours

BAR_WIDTH = 30


def main(run_dir: str = "run") -> int:
    hours = read_hours(Path(run_dir) / "by_hour")
    if not hours:
        print(f"There is nothing in {run_dir}/by_hour: `make run` writes it.")
        return 1
    print("\n".join(table(hours)))
    return 0


def table(hours: dict[Hour, Sums]) -> list[str]:
    """A line for each hour, all countries together; then the countries."""
    by_hour: dict[int, Sums] = {}
    by_country: Counter[str] = Counter()
    for hour, sums in hours.items():
        by_hour[hour.begins_ms] = by_hour.get(hour.begins_ms, Sums()).plus(sums)
        by_country[hour.country] += sums.orders
    most = max(sums.orders for sums in by_hour.values())
    lines = [f"{'hour (UTC)':<18}{'orders':>8}{'paid':>8}{'shipped':>9}{'euro':>12}"]
    for begins_ms, sums in sorted(by_hour.items()):
        moment = f"{datetime.fromtimestamp(begins_ms / 1000, UTC):%Y-%m-%d %H:%M}"
        figures = f"{sums.orders:>8,}{sums.paid:>8,}{sums.shipped:>9,}{sums.ordered_cents / 100:>12,.2f}"
        lines.append(f"{moment:<18}{figures}  {'█' * round(BAR_WIDTH * sums.orders / most)}")
    return [*lines, "", "  ".join(f"{country} {count:,}" for country, count in by_country.most_common())]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
