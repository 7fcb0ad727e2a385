"""`lowwater topics` as a process: TLS, many topics, completion, interruptions, and what it loads."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.conformance.command_line import LIMIT_S, in_terminal, lowwater, no_settings_of_the_user
from tests.integration.client.certificates import Certificates, make
from tests.integration.client.test_tls import server_side
from tests.integration.client.tls_front import TlsFront

from lowwater import Admin, NewTopic
from lowwater.testing import Broker

__all__ = ["no_settings_of_the_user"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def crowded() -> Iterator[str]:
    """A broker with 300 topics."""
    with Broker() as running, Admin(running.bootstrap) as admin:
        admin.create_topics(
            [NewTopic(f"team-{each % 7}.events.v{each}", each % 3 + 1) for each in range(300)]
        ).checked()
        yield running.bootstrap


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lowwater.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, **environment},
    )


# ---- how much there is


def test_no_topics_are_told_with_the_way_to_make_one() -> None:
    with Broker() as empty:
        done = lowwater("topics", "list", "-b", empty.bootstrap)
    assert (done.code, done.out) == (0, "")
    assert done.err == "There are no topics here. `lowwater topics create NAME` makes one.\n"


def test_a_pattern_without_a_match_does_not_look_like_an_empty_cluster() -> None:
    with Broker() as broker:
        broker.fill("orders", next=1)
        done = lowwater("topics", "list", "ordres*", "-b", broker.bootstrap)
        assert (done.code, done.err) == (0, "None of 1 topic matches ordres*.\n")


def test_three_hundred_topics_take_as_many_requests_as_one() -> None:
    with Broker() as running, Admin(running.bootstrap) as admin:
        admin.create_topics([NewTopic(f"t-{each}", 3) for each in range(300)]).checked()
        before = running.requests()
        done = lowwater("topics", "list", "-b", running.bootstrap)
        after = running.requests()
    assert len(done.out.splitlines()) == 301
    counts = {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}
    assert counts["ListOffsets"] == 2
    assert counts["DescribeLogDirs"] == 1
    assert sum(counts.values()) <= 10, counts


def test_a_long_list_ends_with_a_sum_in_a_terminal_only(crowded: str) -> None:
    shown = in_terminal(80, "topics", "list", "-b", crowded).out.splitlines()
    assert len(shown) == 302
    assert shown[-1] == "300 topics, 600 partitions, 0 records, 0 B"
    assert len(lowwater("topics", "list", "-b", crowded).out.splitlines()) == 301


# ---- security


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates")
    return make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def tls(certificates: Certificates) -> Iterator[str]:
    front = TlsFront(server_side(certificates))
    with Broker({"advertised.listeners": f"PLAINTEXT://localhost:{front.port}"}) as running:
        front.forward_to(running.port)
        yield f"localhost:{front.port}"
        front.close()


def test_a_tls_port_is_reached_by_settings_or_by_a_file(tls: str, certificates: Certificates, tmp_path: object) -> None:
    properties = ("security.protocol=ssl", f"ssl.ca.location={certificates.authority}")
    given = [argument for each in properties for argument in ("-X", each)]
    assert lowwater("topics", "list", "-b", tls, *given).code == 0
    file = f"{tmp_path}/tls.conf"
    with open(file, "w", encoding="utf-8") as text:
        text.write("\n".join([f"bootstrap.servers={tls}", *properties]))
    assert lowwater("topics", "list", "-F", file).code == 0


def test_what_is_wrong_at_a_tls_port_is_told_with_the_way_out(tls: str) -> None:
    plain = lowwater("topics", "list", "-b", tls)
    assert plain.code == 1
    assert "perhaps this port wants TLS: try -X security.protocol=SSL" in plain.err
    untrusted = lowwater("topics", "list", "-b", tls, "-X", "security.protocol=SSL")
    assert untrusted.code == 1
    assert re.search(
        r"the certificate of .* is not accepted: .*; -X ssl.ca.location=FILE says whom to trust", untrusted.err
    )


def test_a_broker_that_sends_its_clients_astray_is_told() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        astray = f"127.0.0.1:{nobody.getsockname()[1]}"
        with Broker({"advertised.listeners": f"PLAINTEXT://{astray}"}) as running:
            done = lowwater("topics", "create", "t", "-b", running.bootstrap, "-X", "default.api.timeout.ms=2000")
    assert done.code == 1
    assert f"{astray} is where a broker tells its clients to go: its advertised.listeners" in done.err


# ---- completion


def test_names_of_topics_are_completed(crowded: str) -> None:
    line = f"lowwater topics describe -b {crowded} team-3.events.v10"
    done = command(_LOWWATER_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD="5")
    assert done.stdout.splitlines() == [
        "plain,team-3.events.v10",
        "plain,team-3.events.v101",
        "plain,team-3.events.v108",
    ]


def test_completion_is_silent_where_nobody_listens() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        line = f"lowwater topics describe -b 127.0.0.1:{nobody.getsockname()[1]} t"
        done = command(_LOWWATER_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD="5")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_the_shell(shell: str) -> None:
    done = command("completion", shell)
    assert done.returncode == 0
    assert "_LOWWATER_COMPLETE" in done.stdout


# ---- the process


def test_ctrl_c_ends_it_quietly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        waiting = subprocess.Popen(
            [sys.executable, "-m", "lowwater.cli.main", "topics", "list", "-b", address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        connection, _ = silent.accept()
        with connection:
            waiting.send_signal(signal.SIGINT)
            out, err = waiting.communicate(timeout=LIMIT_S)
    assert (waiting.returncode, out, err.strip()) == (130, "", "")


def test_a_reader_that_has_seen_enough_is_no_error(crowded: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [sys.executable, "-m", "lowwater.cli.main", "topics", "list", "-b", crowded]
    done = subprocess.run(arguments, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "arguments", [["topics", "list"], ["cat", "-L"], ["topics", "list", "-q", "team-1*", "nobody"]]
)
def test_a_full_disk_is_told_in_a_line(crowded: str, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "lowwater.cli.main", *arguments, "-b", crowded]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "lowwater: cannot write the output: No space left on device"
    assert "Traceback" not in done.stderr


def test_a_terminal_that_knows_no_dashes_is_served() -> None:
    with Broker() as running, Admin(running.bootstrap) as admin:
        admin.create_topics([NewTopic("empty", 1)]).checked()
        done = command("topics", "describe", "empty", "-b", running.bootstrap, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0
    assert r"\u2013" in done.stdout  # no newest record


def test_it_loads_neither_numba_nor_what_readers_need(broker: Broker) -> None:
    code = (
        "import sys\n"
        f"sys.argv = ['lowwater', 'topics', 'list', '-b', '{broker.bootstrap}']\n"
        "from lowwater.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numba', 'numpy', 'pyarrow', 'asyncio', 'uvloop', 'lowwater.broker'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_loads_no_client() -> None:
    code = (
        "import sys\n"
        "sys.argv = ['lowwater', 'topics', 'offsets', '--help']\n"
        "from lowwater.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules if name.startswith(('lowwater.client', 'lowwater.wire', 'rich'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_command_teaches_by_example() -> None:
    told = lowwater("--help").out
    for line in ("lowwater broker --data-dir ./data", "lowwater cat", "lowwater topics list", "exits with 1"):
        assert line in told
