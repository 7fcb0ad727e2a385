"""`python -m tests.conformance.differential --requests 5000 --seed 3`: compare both brokers for longer."""

from __future__ import annotations

import argparse
import sys

from tests.conformance.differential.run import Duel, running_duel


def main() -> int:
    parser = argparse.ArgumentParser(description="Send random requests to Apache Kafka and to Lowwater, and compare.")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with running_duel() as duel:
        found = duel.fight(options.seed, options.requests)
    for line in Duel.report(found):
        print(line)
    print(f"seed {options.seed}: {options.requests} requests, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
