"""One mutant, at least, for every rule of the log, groups, transactions and Spark: a wrong change the suites notice.

They stand in `rules/*.txt` as patches, in the form of a diff: a line `== name | file | rule`, then lines that go (-),
come (+) or stay ( ). The suites were not written for them; a survivor means that a rule is not tested. A patch whose
text is gone is an error, so whoever changes the code changes the mutant with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.crash.mutants.patches import Mutant

# Quick ones first: a mutant is done at the first failure.
LOG_SUITES = [
    "tests/unit/log",
    "tests/unit/broker",
    "tests/model/test_log.py",
    "tests/sim/test_crash_enumeration.py",
    "tests/sim/test_broker_crash.py",
    "tests/sim/test_whole_broker.py",
    "tests/crash/test_disk_faults.py",
]
GROUP_SUITES = [
    "tests/unit/groups",
    "tests/unit/broker/test_coordinator.py",
    "tests/unit/broker/test_group_apis.py",
    "tests/model/test_offsets.py",
    "tests/sim/groups",
]
TRANSACTION_SUITES = [
    "tests/unit/transactions",
    "tests/sim/transactions",
]
BROKER_TRANSACTION_SUITES = [
    "tests/unit/broker/test_transactions.py",
    "tests/unit/broker/test_transaction_apis.py",
    "tests/unit/broker/test_transaction_crashes.py",
    "tests/sim/transactions",
]
# Without a JVM: what decides is tested without Spark.
SPARK_SUITES = [
    "tests/unit/spark",
    "--ignore=tests/unit/spark/decoding",
    "tests/model/test_spark_offsets.py",
    "tests/model/test_spark_order.py",
    "tests/model/test_spark_cuts.py",
    "tests/model/test_spark_ordered_streams.py",
    "tests/integration/spark",
]
SPARK_SINK_SUITES = [
    "tests/unit/spark/exactly_once",
    "tests/model/test_spark_sink.py",
    "tests/integration/spark/test_exactly_once.py",
]
SUITES_BY_FILE = {
    "spark/exactly_once/": SPARK_SINK_SUITES,
    "spark/sink_once": SPARK_SINK_SUITES,
    "spark/": SPARK_SUITES,
    "transactions/": TRANSACTION_SUITES,
    "groups/": GROUP_SUITES,
    "broker/transaction": BROKER_TRANSACTION_SUITES,
    "broker/coordinator": [*BROKER_TRANSACTION_SUITES[:-1], *GROUP_SUITES],
    "broker/group_": [*BROKER_TRANSACTION_SUITES[:-1], *GROUP_SUITES],
    "": LOG_SUITES,
}

RULES = Path(__file__).parent / "rules"
HEAD = "== "


def mutants() -> list[Mutant]:
    return [mutant for file in sorted(RULES.glob("*.txt")) for mutant in parse(file.read_text())]


def suites_for(mutant: Mutant) -> list[str]:
    return next(suites for beginning, suites in SUITES_BY_FILE.items() if mutant.file.startswith(beginning))


def parse(text: str) -> Iterator[Mutant]:
    for block in text.split("\n\n"):
        head, *lines = block.strip("\n").splitlines()
        assert head.startswith(HEAD), f"a mutant begins with {HEAD!r}: {head}"
        name, file, rule = head.removeprefix(HEAD).split(" | ")
        yield Mutant(name, rule, file, _side(lines, "-"), _side(lines, "+"))


def _side(lines: list[str], mark: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines if line[0] in (mark, " "))
