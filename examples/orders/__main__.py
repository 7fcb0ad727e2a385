"""`make run`: a broker, a sample of a shop's orders, a pipeline over it on Spark, and a check of what came out.

Everything stays under run/: the next run loads another day, and goes on where this one ended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from examples.orders import chart, check, sample
from examples.orders.loading import create_topics, load
from lowwater.testing import Broker

PIPELINE = Path(__file__).with_name("pipeline.toml")
FIRST_DAYS = 3
ORDERS_A_DAY = 8_000
WARM_UP = "import lowwater.client.columns, lowwater.client.producing.tables, lowwater.spark.decoding.json_values"
_LOADED = "days-loaded"


def main() -> int:
    asked = _arguments()
    return make_run(Path(asked.run_dir).absolute(), asked.orders, run_pipeline, split_plainly)


def make_run(run_dir: Path, orders: int, run: Callable[[str, Path], int], split: Callable[[str, Path], None]) -> int:
    """Loads, runs, checks and draws; the exit code. `run` is given the bootstrap server, and returns an exit code too;
    `split` reads the topics once more, in batches that are cut as Spark does."""
    started_s = time.perf_counter()
    run_dir.mkdir(parents=True, exist_ok=True)
    # Compiled once on a machine: better now than by all workers at the same time.
    warming = subprocess.Popen([sys.executable, "-c", WARM_UP])
    with Broker(subprocess=True, data_dir=run_dir / "broker") as broker:
        print(f"1. A broker is up on {broker.bootstrap}; its data are in {_short(run_dir / 'broker')}.")
        before = days_loaded(run_dir)
        load_days(broker.bootstrap, run_dir, orders)
        warming.wait()
        print(_beginning(run_dir, before), flush=True)
        code = run(broker.bootstrap, run_dir)
        if code != 0:
            print(f"The pipeline ended with exit code {code}.")
            return code
        print("4. Every record, and where it went:\n")
        code = check.main(broker.bootstrap, str(run_dir))
        split(broker.bootstrap, run_dir)
        told = chart.make_chart(broker.bootstrap, run_dir)
        print(f"\n5. Event time, batch by batch: {told}; drawn in {_short(run_dir / 'event-time.svg')}.")
    print(_ending(run_dir, time.perf_counter() - started_s))
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.orders")
    parser.add_argument("--run-dir", default="run", help="where everything is kept (run)")
    parser.add_argument("--orders", type=int, default=ORDERS_A_DAY, help=f"orders a day ({ORDERS_A_DAY:,})")
    return parser.parse_args()


def days_loaded(run_dir: Path) -> int:
    """By the runs before."""
    noted = run_dir / _LOADED
    return int(noted.read_text()) if noted.exists() else 0


def load_days(bootstrap: str, run_dir: Path, orders: int) -> None:
    """The first days of the sample, or the next one."""
    started_s = time.perf_counter()
    begin = days_loaded(run_dir)
    days = range(begin, begin + 1) if begin else range(FIRST_DAYS)
    create_topics(bootstrap)
    messages = sample.messages_of(days, orders)
    load(bootstrap, messages)
    (run_dir / _LOADED).write_text(str(days.stop))
    first, last = (sample.FIRST_DAY.toordinal() + day for day in (days.start, days.stop - 1))
    named = " to ".join(f"{sample.FIRST_DAY.fromordinal(day):%-d %B}" for day in dict.fromkeys((first, last)))
    what = "another day" if begin else f"{len(days)} days"
    seconds = time.perf_counter() - started_s
    print(
        f"2. Loaded {what} of orders, payments and shipments ({named}): {len(messages):,} records in {seconds:.1f} s."
    )


def _beginning(run_dir: Path, before: int) -> str:
    command = f"lowwater pipeline run {_short(PIPELINE)}"
    if before and (run_dir / "checkpoint").exists():
        return f"3. Spark goes on from the checkpoint in {_short(run_dir / 'checkpoint')}:  {command}"
    return f"3. Spark begins:  {command}"


def run_pipeline(bootstrap: str, run_dir: Path) -> int:
    """As one would by hand; its exit code."""
    variables = {**os.environ, "BOOTSTRAP": bootstrap, "RUN_DIR": str(run_dir)}
    command = [sys.executable, "-m", "lowwater.cli.main", "pipeline", "run", str(PIPELINE)]
    return subprocess.run(command, env=variables).returncode


def split_plainly(bootstrap: str, run_dir: Path) -> None:
    command = [sys.executable, "-m", "examples.orders.plain", bootstrap, str(run_dir / chart.PLAIN)]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)


def _ending(run_dir: Path, seconds: float) -> str:
    python = _short(Path(sys.executable))
    return (
        f"\nThat took {seconds:.0f} s. The result is Parquet in {_short(run_dir / 'by_hour')}; to look at it:\n"
        f"  {python} -m examples.orders.show\n"
        f"The broker's data are in {_short(run_dir / 'broker')}; to look around in them:\n"
        f"  {python.removesuffix('python')}lowwater broker --data-dir {_short(run_dir / 'broker')}\n"
        "Run `make run` again: it loads another day, and goes on from the checkpoint."
    )


def _short(path: Path) -> str:
    """As seen from here."""
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
