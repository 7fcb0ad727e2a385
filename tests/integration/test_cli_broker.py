"""`lowwater broker` as a user runs it: a process, its ready line, its signals, its refusals."""

import os
import re
import signal
import socket
import subprocess
import sys

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.conformance.raw import Wire

from lowwater.wire.messages import MetadataRequest

READY = re.compile(r"lowwater broker ready kafka=(?P<address>[^ ]+)( http=(?P<http>[^ ]+))? data=(?P<data>.+)\n")
TIMEOUT_S = 30


class Process:
    """A `lowwater` process with its output at hand."""

    def __init__(self, *arguments: str) -> None:
        """Without the dashboard: it has tests of its own."""
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "lowwater.cli.main", *arguments, "--no-http"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ready(self) -> str:
        line = self.popen.stdout.readline()
        match = READY.fullmatch(line)
        assert match, f"no ready line but {line!r}: {self.popen.stderr.read()}"
        return match["address"]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.popen.send_signal(number)
        return self.popen.wait(TIMEOUT_S)

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.communicate(timeout=TIMEOUT_S)


@pytest.fixture
def lowwater():
    processes = []

    def run(*arguments: str) -> Process:
        processes.append(Process(*arguments))
        return processes[-1]

    yield run
    for process in processes:
        process.close()


def run_to_end(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "lowwater.cli.main", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S
    )


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    failures = []
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert not failures


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "cli"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = []
    while len(values) < count:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"only {len(values)} of {count} records came"
        assert message.error() is None
        values.append(message.value())
    consumer.close()
    return values


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_broker_cleanly_and_the_records_are_there_again(lowwater, tmp_path, number):
    broker = lowwater("broker", "--data-dir", str(tmp_path), "--port", "0")
    produce(broker.ready(), "greetings", [b"hello", b"again"])
    assert broker.stop(number) == 0
    assert (tmp_path / "clean").exists()
    again = lowwater("broker", "--data-dir", str(tmp_path), "--port", "0")
    assert consume(again.ready(), "greetings", 2) == [b"hello", b"again"]


def test_the_ready_line_is_all_that_stands_on_stdout(lowwater, tmp_path):
    broker = lowwater("broker", "--data-dir", str(tmp_path), "--port", "0")
    address = broker.ready()
    assert int(address.rpartition(":")[2]) > 0
    broker.stop()
    assert broker.popen.stdout.read() == ""


def test_a_directory_in_use_is_refused_by_name(lowwater, tmp_path):
    lowwater("broker", "--data-dir", str(tmp_path), "--port", "0").ready()
    second = run_to_end("broker", "--data-dir", str(tmp_path), "--port", "0")
    assert second.returncode == 1
    assert "in use by another broker" in second.stderr
    assert str(tmp_path) in second.stderr
    assert second.stdout == ""


def test_the_data_directory_is_made_with_those_above_it(lowwater, tmp_path):
    data_dir = tmp_path / "a" / "b" / "c"
    lowwater("broker", "--data-dir", str(data_dir), "--port", "0").ready()
    assert (data_dir / "format").exists()


def test_a_port_in_use_is_refused_by_number(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run_to_end("broker", "--data-dir", str(tmp_path), "--port", str(port))
    assert refused.returncode == 1
    assert f"port {port} of 127.0.0.1 is in use; give another --port, 0 takes a free one" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_host_that_is_not_known_is_refused_by_name(tmp_path):
    refused = run_to_end("broker", "--data-dir", str(tmp_path), "--host", "nohost.invalid", "--port", "0", "--no-http")
    assert refused.returncode == 1
    assert "--host nohost.invalid: " in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_directory_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("not a directory")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        refused = run_to_end("broker", "--data-dir", str(place), "--port", "0")
        assert refused.returncode == 1
        assert f"--data-dir must be a directory, and {place} cannot be one" in refused.stderr
        assert "Traceback" not in refused.stderr


def test_an_unknown_setting_is_refused_with_the_names_that_look_alike():
    refused = run_to_end("broker", "--set", "log.segment.byte=1048576")
    assert refused.returncode == 1
    assert "log.segment.byte" in refused.stderr
    assert "log.segment.bytes" in refused.stderr


def test_a_bad_value_is_refused_with_its_name():
    refused = run_to_end("broker", "--set", "num.partitions=many")
    assert refused.returncode == 1
    assert "num.partitions" in refused.stderr
    assert "many" in refused.stderr


@pytest.mark.parametrize("text", ["justaname", "=value"])
def test_set_wants_a_name_and_a_value(text):
    refused = run_to_end("broker", "--set", text)
    assert refused.returncode == 1
    assert text in refused.stderr


def test_a_missing_config_file_is_refused_by_name(tmp_path):
    refused = run_to_end("broker", "--config", str(tmp_path / "none.properties"))
    assert refused.returncode == 1
    assert "none.properties" in refused.stderr


def test_settings_come_from_the_file_and_the_command_line_wins(lowwater, tmp_path):
    file = tmp_path / "broker.properties"
    file.write_text("num.partitions=3\nauto.create.topics.enable=true\n")
    broker = lowwater(
        "broker",
        "--data-dir",
        str(tmp_path / "data"),
        "--port",
        "0",
        "--config",
        str(file),
        "--set",
        "num.partitions=5",
    )
    bootstrap = broker.ready()
    produce(bootstrap, "auto", [b"x"])
    metadata = Producer({"bootstrap.servers": bootstrap}).list_topics("auto", TIMEOUT_S)
    assert len(metadata.topics["auto"].partitions) == 5


def test_advertised_listeners_are_what_clients_are_told(lowwater, tmp_path):
    broker = lowwater(
        "broker",
        "--data-dir",
        str(tmp_path),
        "--port",
        "0",
        "--set",
        "advertised.listeners=PLAINTEXT://logs.example:19092",
    )
    host, _, port = broker.ready().rpartition(":")
    with Wire((host, int(port))) as wire:
        metadata = wire.ask(MetadataRequest(topics=[]))
    assert [(one.host, one.port) for one in metadata.brokers] == [("logs.example", 19092)]


def test_help_config_prints_every_setting_and_its_default():
    printed = run_to_end("broker", "--help-config")
    assert printed.returncode == 0
    for name in ("log.segment.bytes", "log.flush.policy", "num.partitions", "advertised.listeners"):
        assert name in printed.stdout


def test_help_names_every_command_and_option():
    assert "broker" in run_to_end("--help").stdout
    told = run_to_end("broker", "--help").stdout
    for option in ("--data-dir", "--port", "--host", "--config", "--set", "--help-config", "--log-level"):
        assert option in told


def test_the_broker_process_imports_nothing_of_the_reader_or_spark():
    heavy = "{'numba', 'numpy', 'pyarrow', 'pyspark', 'pandas'}"
    code = f"import sys, lowwater.cli.broker, lowwater.server.node; print(sorted({heavy} & set(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"


def test_a_killed_broker_leaves_a_directory_that_the_next_one_takes(lowwater, tmp_path):
    broker = lowwater("broker", "--data-dir", str(tmp_path), "--port", "0")
    produce(broker.ready(), "kept", [b"one", b"two"])
    os.kill(broker.popen.pid, signal.SIGKILL)
    broker.popen.wait(TIMEOUT_S)
    assert not (tmp_path / "clean").exists()
    again = lowwater("broker", "--data-dir", str(tmp_path), "--port", "0")
    assert consume(again.ready(), "kept", 2) == [b"one", b"two"]
