"""`python -m tests.spark.every_case [--against=kafka]`: the whole option matrix, called as Spark calls the source."""

from __future__ import annotations

import argparse
import time

from tests.conformance.under_test import running
from tests.spark.as_spark_calls import batch_rows, stream_batches
from tests.spark.checking import check
from tests.spark.matrix import FEWER, Expectations, every_case
from tests.spark.prepared import Prepared
from tests.spark.writing import Topics

from lowwater.spark.limits import RangeError
from lowwater.spark.option_table import OptionError

KAFKA_BROKERS = 3
TOLD_EVERY = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.every_case")
    parser.add_argument("--against", choices=("lowwater", "kafka"), default="lowwater")
    parser.add_argument("--part", default="1/1", metavar="N/OF", help="only the N-th part of them")
    arguments = parser.parse_args()
    number, of = map(int, arguments.part.split("/"))
    with running(arguments.against, kafka_brokers=KAFKA_BROKERS) as broker:
        topics = Topics(broker.bootstrap)
        expectations = Expectations(Prepared(broker.bootstrap, topics))
        began = time.monotonic()
        tried = refused = rows = 0
        for case in list(every_case())[number - 1 :: of]:
            query = expectations.of(case)
            options = {"kafka.bootstrap.servers": broker.bootstrap, **query.options}
            columns = FEWER if case.columns == "fewer" else ()
            try:
                batches = [batch_rows(options, columns)] if case.is_batch else stream_batches(options, columns)
            except (RangeError, OptionError):
                assert query.rows is None, str(case)
                refused += 1
            else:
                check(case, query, batches)
                rows += len(query.rows or ())
            tried += 1
            if tried % TOLD_EVERY == 0:
                print(f"{tried} cases, {time.monotonic() - began:.0f} s", flush=True)
        print(f"{tried} cases, {refused} refused as they should be, {rows} rows, all as confluent-kafka reads them")
        topics.close()


if __name__ == "__main__":
    main()
