"""How the server starts, who may reach it, and when it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fresh import fresh
from tests.integration.http.served import TIMEOUT_S, Cluster, Served, ask, group_path, until

from lowwater.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def answers(url: str) -> bool:
    try:
        return ask(url, "GET", "/healthz").status == 200
    except OSError:
        return False


def test_a_broker_serves_http_and_ends_it_with_itself(tmp_path: Path) -> None:
    broker = Served("broker", "--data-dir", str(tmp_path), "--port", "0", "--http-port", "0")
    try:
        assert broker.get("/healthz") == {"ok": True}
        assert broker.stop() == 0
        until(lambda: not answers(broker.url), "nobody listens any more")
    finally:
        broker.close()


def test_the_dashboard_of_a_killed_broker_ends(tmp_path: Path) -> None:
    broker = Served("broker", "--data-dir", str(tmp_path), "--port", "0", "--http-port", "0")
    try:
        assert broker.get("/healthz") == {"ok": True}
        broker.stop(signal.SIGKILL)
        until(lambda: not answers(broker.url), "nobody listens any more")
    finally:
        broker.close()


def test_a_broker_without_http_says_nothing_of_it(tmp_path: Path) -> None:
    broker = Served("broker", "--data-dir", str(tmp_path), "--port", "0", "--no-http")
    try:
        assert " http=" not in broker.line
    finally:
        broker.close()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments in (
            ["broker", "--data-dir", str(tmp_path), "--port", "0", "--http-port", port],
            ["dashboard", "--port", port],
        ):
            done = subprocess.run(
                [sys.executable, "-m", "lowwater.cli.main", *arguments],
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
            )
            assert done.returncode == 1
            assert f"{port}" in done.stderr
            assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["dashboard"], ["broker", "--port", "0", "--data-dir", "{}"]])
def test_beyond_loopback_a_password_is_needed(tmp_path: Path, command: list[str]) -> None:
    host = "--http-host" if command[0] == "broker" else "--host"
    words = [word.format(tmp_path / "data") for word in command]
    done = subprocess.run(
        [sys.executable, "-m", "lowwater.cli.main", *words, host, "0.0.0.0"],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 1
    assert "LOWWATER_HTTP_PASSWORD" in done.stderr


def test_with_a_password_only_who_knows_it_sees_anything(broker: Broker, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("low tide\n")
    one = Served(
        "dashboard", "-b", broker.bootstrap, "--port", "0", "--host", "0.0.0.0", "--http-password-file", str(password)
    )
    try:
        assert one.ask("GET", "/topics").status == 401
        assert one.ask("GET", "/").status == 200
        assert one.ask("POST", "/login", {"password": "high tide"}).status == 401
        answer = one.ask("POST", "/login", {"password": "low tide"})
        assert answer.status == 204
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert one.ask("GET", "/topics", cookie=cookie.partition(";")[0]).status == 200
        assert one.ask("GET", "/topics", Authorization="Bearer low tide").status == 200
    finally:
        one.close()


def test_answers_forbid_what_pages_elsewhere_could_try(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("g")
    cluster.commit(group, topic, {0: 0})
    path = group_path(group, f"/offsets/{topic}/0")
    for headers, status in (
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ):
        assert served.ask("PUT", path, {"offset": 7}, **headers).status == status
    assert served.get(path) == {"offset": 0}
    assert served.ask("GET", "/topics", Host="evil.example").status == 421
    page = served.ask("GET", "/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/static/../serving.py", "/static/%2e%2e/serving.py", "/static/vendor", "/etc/passwd"]
)
def test_only_the_dashboards_files_are_served(served: Served, path: str) -> None:
    assert served.ask("GET", path).status == 404


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    answer = served.ask("POST", group_path("g", "/reset"), b'{"to": "' + b"x" * (1 << 20) + b'"}')
    assert answer.status == 413


def test_a_cluster_that_is_gone_is_told_and_found_again(tmp_path: Path) -> None:
    with Broker(data_dir=tmp_path) as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        one = Served(
            "dashboard", "-b", broker.bootstrap, "--port", "0", "--every", "0.2", "-X", "default.api.timeout.ms=1500"
        )
        assert one.get("/healthz") == {"ok": True}
        until(lambda: one.ask("GET", "/consumer-groups").status == 200, "there was a look")
    try:
        answer = one.ask("GET", "/healthz")
        assert (answer.status, answer.body["error"]["code"]) == (503, "CLUSTER_UNREACHABLE")
        told = until(lambda: one.get("/consumer-groups")["errors"], "the failed look shows")
        assert told[0]["what"] == "the cluster"
        with Broker(data_dir=tmp_path, port=port):
            until(lambda: one.ask("GET", "/healthz").status == 200, "it is found again")
            until(lambda: not one.get("/consumer-groups")["errors"], "the next look brings all")
    finally:
        one.close()


def test_the_grafana_dashboard_is_printed() -> None:
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "lowwater.cli.main", "dashboard", "--grafana"],
        capture_output=True, text=True, timeout=TIMEOUT_S, env=environment,
    )  # fmt: skip
    assert '"title": "Lowwater"' in done.stdout


def test_listeners_to_events_hold_up_no_stop(broker: Broker) -> None:
    one = Served("dashboard", "-b", broker.bootstrap, "--port", "0", "--every", "0.2")
    try:
        with urllib.request.urlopen(f"{one.url}/events", timeout=TIMEOUT_S) as events:
            lines = iter(events.readline, b"")
            assert next(line for line in lines if line.startswith(b"event:")) == b"event: sample\n"
            assert set(json.loads(next(lines).removeprefix(b"data: "))) == {"at_ms", "groups", "errors"}
            one.process.terminate()
            assert [line for line in lines if line.startswith(b"event: full")] == []  # it ends
        assert one.process.wait(TIMEOUT_S) == 0
    finally:
        one.close()
