"""Seeded runs of transactions on virtual time: `python -m tests.sim.transactions --seeds 10000 --from 0`.

`--every-append` repeats each seed with a crash at each of its appends instead. Prints how many seeds ran, and every
violation with its seed.
"""

from __future__ import annotations

import argparse
import logging
import sys
from concurrent.futures import ProcessPoolExecutor

from tests.sim.transactions.runs import Totals, run_every_append, run_seeds

CHUNK = 25


def main() -> int:
    arguments = _arguments()
    seeds = list(range(arguments.first, arguments.first + arguments.seeds))
    chunk = 1 if arguments.every_append else CHUNK
    chunks = [seeds[at : at + chunk] for at in range(0, len(seeds), chunk)]
    totals = Totals()
    work = run_every_append if arguments.every_append else run_seeds
    with ProcessPoolExecutor(arguments.jobs, initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        for done in pool.map(work, chunks):
            totals.add(done)
            print(*done.violations, sep="\n", end="\n" if done.violations else "", flush=True)
    print(totals)
    return int(bool(totals.violations))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.transactions", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--every-append", action="store_true", help="crash each seed at each of its appends")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
