"""librdkafka's mock cluster in a process of its own: `python -m bench.mock_cluster` prints its port and stays.

It answers on a TCP port like a broker, checks no CRC, writes no file and keeps at most 5 MiB of a partition.
"""

from __future__ import annotations

import signal

import confluent_kafka


def main() -> None:
    host = confluent_kafka.Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = host.list_topics(timeout=10).brokers.values()
    print(f"mock ready kafka={broker.host}:{broker.port}", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    main()
