"""The Nth I/O fails, every N: `python -m tests.crash.faults [SCRIPT …]`. Prints what was hit and how it ended."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter

from tests.sim.fault_world import run_faults
from tests.sim.scripts import SCRIPTS

from lowwater.testing.faults_disk import FaultKind


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.faults", description=__doc__)
    parser.add_argument("scripts", nargs="*", default=list(SCRIPTS))
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    total: Counter[str] = Counter()
    for kind in FaultKind:
        counts: Counter[str] = Counter()
        for script in arguments.scripts:
            if kind is FaultKind.READ and script == "compactions":
                continue  # a compaction that cannot read gives up; the script wants it to go through
            for lasting in (False, True):
                report = run_faults(script, kind, lasting=lasting)
                counts.update(struck=report.struck, stopped=report.stopped, resumed=report.resumed)
                counts.update(tolerated=report.tolerated, violations=len(report.violations))
                print(*(f"  {violation[:300]}" for violation in report.violations), sep="\n", end="")
        print(kind.name, ", ".join(f"{name} {count}" for name, count in counts.items()), flush=True)
        total.update(counts)
    print(f"faults {total['struck']}, violations {total['violations']}")
    return int(total["violations"] > 0)


if __name__ == "__main__":
    sys.exit(main())
