"""Seeded runs of consumer groups on virtual time: `python -m tests.sim.groups --seeds 10000 --from 0`.

`--every-append` repeats each seed with a crash at each of its appends instead. Prints how many seeds ran, which cells
of the classic table they met, and every violation with its seed.
"""

from __future__ import annotations

import argparse
import logging
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.sim.groups.coverage import ALL_CELLS, NOT_DEMANDED
from tests.sim.groups.runs import Totals, run_every_append, run_seeds

CHUNK = 25


def main() -> int:
    arguments = _arguments()
    seeds = list(range(arguments.first, arguments.first + arguments.seeds))
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    totals = Totals()
    work = run_every_append if arguments.every_append else run_seeds
    with ProcessPoolExecutor(arguments.jobs, initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        for done in pool.map(work, chunks):
            totals.add(done)
            print(*done.violations, sep="\n", end="\n" if done.violations else "", flush=True)
    print(totals)
    uncovered = sorted(ALL_CELLS - totals.cells)
    print(f"cells of the classic table covered: {len(ALL_CELLS) - len(uncovered)} of {len(ALL_CELLS)}")
    print(*(f"  not covered: {cell}{_why(cell)}" for cell in uncovered), sep="\n")
    return int(bool(totals.violations))


def _why(cell: str) -> str:
    return " (rare)" if cell in NOT_DEMANDED else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.groups", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--every-append", action="store_true", help="crash each seed at each of its appends")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
