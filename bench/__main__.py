"""`python -m bench [workload …] [--quick] [--no-kafka] [--only TEXT]`: measure, print, and keep the figures."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from bench.plan import FULL, QUICK, Run
from bench.report import Report, machine
from bench.subjects import Fleet
from bench.warm_up import warm_up
from bench.workloads import NOT_QUICK, WORKLOADS


def main() -> None:
    # As with Ctrl-C: brokers are stopped and their directories removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    arguments = _arguments()
    size = QUICK if arguments.quick else FULL
    report = Report()
    started = time.monotonic()
    print(f"lowwater bench on {machine()}")
    with Fleet(with_kafka=not arguments.no_kafka) as fleet:
        if fleet.kafka_missing:
            print(f"without Apache Kafka: {fleet.kafka_missing}")
        fleet.on_kafka_started = lambda kafka: warm_up(kafka, size.kafka_warm_up_seconds)
        for name in arguments.workloads or _usual(quick=arguments.quick):
            text, run = WORKLOADS[name]
            report.begin(name, text)
            run(Run(fleet, report, size, arguments.quick, arguments.only))
            report.end()
    report.summary()
    print(f"\n{time.monotonic() - started:.0f} s in all; figures of every round: {report.write()}")


def _usual(*, quick: bool) -> list[str]:
    return [name for name in WORKLOADS if not (quick and name in NOT_QUICK)]


def _arguments() -> argparse.Namespace:
    listed = "\n".join(f"  {name:<15}{text}" for name, (text, _) in WORKLOADS.items())
    parser = argparse.ArgumentParser(
        prog="python -m bench", epilog=f"workloads:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="workload", help="all of them when none is named")
    parser.add_argument("--quick", action="store_true", help="less of everything: under 3 minutes, rougher figures")
    parser.add_argument("--no-kafka", action="store_true", help="leave Apache Kafka out")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help='of readers, tables with this in their title: "1 KB, 4 "'
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.workloads) - set(WORKLOADS):
        parser.error(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}")
    return arguments


if __name__ == "__main__":
    main()
