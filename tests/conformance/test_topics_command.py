"""`lowwater topics` against the broker under test."""

from __future__ import annotations

import csv
import io
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from tests.conformance.asking import eventually
from tests.conformance.command_line import Done, in_terminal, lowwater, no_settings_of_the_user
from tests.conformance.conftest import NewTopic
from tests.conformance.under_test import UnderTest

from lowwater import Admin
from lowwater.types import TopicPartition

__all__ = ["no_settings_of_the_user"]

STAMP = 1_700_000_000_000
LIMIT_S = 60


class Topics:
    """`lowwater topics VERB …` at the broker under test."""

    def __init__(self, broker: UnderTest) -> None:
        self._at = ("-b", broker.bootstrap)

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        return lowwater("topics", *arguments, *self._at, stdin=stdin)

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    def csv(self, *arguments: str) -> list[dict[str, str]]:
        done = self(*arguments, "--csv")
        assert (done.code, done.err) == (0, "")
        return list(csv.DictReader(io.StringIO(done.out)))

    def in_terminal(self, columns: int, *arguments: str, typed: str = "") -> Done:
        return in_terminal(columns, "topics", *arguments, *self._at, typed=typed)


@pytest.fixture
def topics(broker: UnderTest) -> Topics:
    return Topics(broker)


@pytest.fixture(scope="module")
def written(broker: UnderTest, new_topic: NewTopic) -> str:
    """A topic with ten records in partition 0, of which the first four are deleted, and none in partition 1."""
    topic = new_topic("command", partitions=2, **{"retention.ms": "-1", "segment.bytes": "2097152"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce(topic, b"x" * 100, partition=0, timestamp=STAMP + number)
    assert producer.flush(LIMIT_S) == 0
    with Admin(broker.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 4}).checked()
        admin.alter_group_offsets(f"group-{topic}", {TopicPartition(topic, 0): 6}).checked()
    return topic


# ---- list


def test_list_shows_partitions_records_and_sizes(topics: Topics, written: str) -> None:
    [row] = topics.json("list", written)
    assert (row["topic"], row["partitions"], row["replicas"], row["records"]) == (written, 2, 1, 6)
    assert row["bytes"] > 1000
    assert (row["trouble"], row["internal"]) == ("", False)
    assert len(row["id"]) == 22


def test_the_three_forms_of_a_list_say_the_same(topics: Topics, written: str) -> None:
    [from_json], [from_csv] = topics.json("list", written), topics.csv("list", written)
    assert {name: str(value) for name, value in from_json.items()} == from_csv
    head, row = topics("list", written).out.splitlines()
    assert head.split() == ["TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "SIZE"]
    assert row.split()[:4] == [written, "2", "1", "6"]


def test_topics_are_chosen_by_name_by_pattern_and_by_expression(topics: Topics, new_topic: NewTopic) -> None:
    first, second = new_topic("choose.a"), new_topic("choose.b")
    assert topics("list", "-q", "choose.*").out == f"{first}\n{second}\n"
    assert topics("list", "-q", r"^choose\.a.*").out == f"{first}\n"
    assert topics("list", "-q", second, first, first).out == f"{first}\n{second}\n"
    assert {first, second} <= set(topics("list", "-q").out.splitlines())
    nothing = topics("list", "choose.c*")
    assert (nothing.code, nothing.out) == (0, "")


def test_topics_of_the_brokers_own_are_shown_when_asked_for(topics: Topics, written: str) -> None:
    assert "__consumer_offsets" not in topics("list", "-q").out
    assert "__consumer_offsets" in topics("list", "-q", "--all").out.splitlines()
    assert topics("list", "-q", "__consumer_offsets").out == "__consumer_offsets\n"


def test_a_name_that_is_not_there_is_told_with_one_that_is(topics: Topics, written: str) -> None:
    done = topics("list", written, written[:-1] + "!")
    assert done.code == 1
    assert written in done.out
    # Other suites have topics on the same broker, some with names that are alike.
    assert done.err.startswith(f"lowwater: no topic is called '{written[:-1]}!'; did you mean {written}")


# ---- describe


def test_describe_shows_partitions_and_the_settings_of_the_topic(topics: Topics, written: str) -> None:
    [topic] = topics.json("describe", written)
    assert {row["name"]: (row["value"], row["source"]) for row in topic["settings"]} == {
        "retention.ms": ("-1", "topic"),
        "segment.bytes": ("2097152", "topic"),
    }
    first, second = topic["partitions"]
    assert (first["start"], first["end"], first["newest_ms"]) == (4, 10, STAMP + 9)
    assert (second["start"], second["end"], second["newest_ms"], second["bytes"]) == (0, 0, None, 0)
    assert first["in_sync"] == first["replicas"] == [first["leader"]]
    assert (topic["records"], topic["newest_ms"]) == (6, STAMP + 9)
    shown = topics("describe", written).out
    assert f"{written}  2 partitions, 1 replica, 6 records, " in shown
    assert "2097152 (2.00 MiB)" in shown


def test_describe_shows_all_settings_when_asked_to(topics: Topics, written: str) -> None:
    [topic] = topics.json("describe", written, "--settings")
    settings = {row["name"]: row for row in topic["settings"]}
    assert settings["cleanup.policy"] == {"name": "cleanup.policy", "value": "delete", "source": "default"}
    assert len(settings) > 20


def test_describe_in_csv_is_a_row_per_partition(topics: Topics, written: str) -> None:
    rows = topics.csv("describe", written)
    assert [(row["topic"], row["partition"], row["start"], row["end"]) for row in rows] == [
        (written, "0", "4", "10"),
        (written, "1", "0", "0"),
    ]


def test_describe_wants_something_to_describe(topics: Topics) -> None:
    assert topics("describe").code == 2
    done = topics("describe", "nowhere.*")
    assert done.code == 1
    assert "no topic matches 'nowhere.*'" in done.err


# ---- offsets


def test_offsets_shows_where_positions_lead(topics: Topics, written: str) -> None:
    positions = ("earliest", "latest", "-3", f"s@{STAMP + 5}", "-1h", "7")
    asked = [argument for position in positions for argument in ("--at", position)]
    first, second = topics.json("offsets", written, *asked)
    assert (first["start"], first["end"], first["records"]) == (4, 10, 6)
    assert list(first["at"].values()) == [4, 10, 7, 5, 10, 7]
    assert list(first["to_read"].values()) == [6, 0, 3, 5, 0, 3]
    assert list(second["at"].values()) == [0, 0, 0, 0, 0, 7]


def test_offsets_of_a_group_and_of_single_partitions(topics: Topics, written: str) -> None:
    stored = topics.json("offsets", written, "--at", "stored|earliest", "--group", f"group-{written}")
    assert [row["at"]["stored|earliest"] for row in stored] == [6, 0]
    wish = f"latest,{written}[0]=5"
    assert [row["at"][wish] for row in topics.json("offsets", written, "--at", wish)] == [5, 0]


def test_offsets_as_table_and_csv(topics: Topics, written: str) -> None:
    table = topics("offsets", written, "--at", "-3").out.splitlines()
    assert table[0].split() == ["PARTITION", "START", "END", "AT", "-3", "TO", "READ"]
    assert table[1].split() == ["0", "4", "10", "7", "3"]
    [first, _] = topics.csv("offsets", written, "--at", "-3")
    assert (first["topic"], first["end"], first["at -3"], first["to read -3"]) == (written, "10", "7", "3")


def test_a_date_without_a_zone_needs_one(topics: Topics, written: str) -> None:
    refused = topics("offsets", written, "--at", "@2023-11-14T22:13:20")
    assert refused.code == 2
    assert "has no time zone" in refused.err
    at = topics.json("offsets", written, "--at", "@2023-11-14T22:13:20", "--zone", "UTC")
    assert [row["to_read"]["@2023-11-14T22:13:20"] for row in at] == [6, 0]
    assert topics("offsets", written, "--at", "today", "--zone", "Europe/Nowhere").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--at", "yesterday"), 2, "'yesterday' is not a start position"),
        (("--at", "stored"), 2, "say which one with --group"),
        (("--at", "stored", "--group", "nobody-ever"), 1, "no committed offset"),
        (("--at", "other=3"), 1, "the position names 'other', which is not asked for"),
    ],
)
def test_a_position_that_leads_nowhere_is_told(
    topics: Topics, written: str, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = topics("offsets", written, *arguments)
    assert done.code == code
    assert told in done.err


# ---- create and delete


def test_create_makes_topics_with_their_settings(topics: Topics, fresh_name: str) -> None:
    names = (f"{fresh_name}-a", f"{fresh_name}-b")
    done = topics("create", *names, "-p", "3", "-c", "retention.ms=60000")
    assert (done.code, done.out.splitlines()) == (0, [f"made {name}: 3 partitions, 1 replica" for name in names])
    eventually(lambda: len(topics.json("list", f"{fresh_name}-?")) == 2)
    [described, _] = topics.json("describe", *names)
    assert len(described["partitions"]) == 3
    assert described["settings"] == [{"name": "retention.ms", "value": "60000", "source": "topic"}]


def test_create_says_what_is_there_already(topics: Topics, written: str) -> None:
    refused = topics("create", written)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"lowwater: {written} is there already; --if-not-exists takes that for done\n"
    assert topics("create", written, "--if-not-exists").code == 0


def test_a_dry_run_makes_nothing(topics: Topics, fresh_name: str) -> None:
    done = topics("create", fresh_name, "--partitions", "2", "--dry-run")
    assert (done.code, done.out) == (0, f"would make {fresh_name}: 2 partitions, 1 replica\n")
    assert topics("list", "-q", f"{fresh_name}*").out == ""
    assert topics("create", fresh_name, "-c", "no.such=1", "--dry-run").code == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a b",), "a-z A-Z 0-9 . _ -"),
        (("x" * 250,), "at most 249"),
        (("good", "-p", "0"), "0 is not in the range"),
        (("good", "-c", "name"), "expected NAME=VALUE"),
    ],
)
def test_what_cannot_be_made_is_not_tried(topics: Topics, arguments: tuple[str, ...], told: str) -> None:
    done = topics("create", *arguments)
    assert done.code == 2
    assert told in done.err


def test_delete_asks_for_a_yes_where_nobody_can_be_asked(topics: Topics, new_topic: NewTopic) -> None:
    topic = new_topic("doomed")
    refused = topics("delete", topic)
    assert refused.code == 2
    assert "--yes" in refused.err
    assert topics("list", "-q", topic).out == f"{topic}\n"
    assert topics("delete", topic, "--yes").out == f"deleted {topic}\n"
    eventually(lambda: topics("list", "-q", f"{topic}*").out == "")


def test_delete_says_what_will_be_lost_and_heeds_a_no(topics: Topics, written: str) -> None:
    done = topics.in_terminal(80, "delete", written, typed="n\n")
    assert done.code == 0
    assert f"  {written}: 2 partitions, 6 records, " in done.out
    assert done.out.endswith("Nothing was deleted.\n")
    assert topics("list", "-q", written).out == f"{written}\n"


def test_delete_touches_nothing_when_one_is_not_there(topics: Topics, new_topic: NewTopic) -> None:
    topic = new_topic("spared")
    refused = topics("delete", topic, "nowhere", "--yes")
    assert (refused.code, refused.out) == (1, "")
    assert "no topic is called 'nowhere'" in refused.err
    assert topics("delete", topic, "nowhere", "--yes", "--if-exists").code == 0


# ---- alter


def test_alter_changes_settings_and_sets_them_back(topics: Topics, new_topic: NewTopic) -> None:
    topic = new_topic("altered", **{"retention.ms": "1000"})
    done = topics("alter", topic, "-c", "max.message.bytes=2000000", "--unset", "retention.ms")
    assert (done.code, done.out) == (0, f"changed {topic}: max.message.bytes=2000000, retention.ms unset\n")
    eventually(
        lambda: (
            topics.json("describe", topic)[0]["settings"]
            == [{"name": "max.message.bytes", "value": "2000000", "source": "topic"}]
        )
    )


def test_alter_lets_topics_grow_and_warns_of_keys(topics: Topics, new_topic: NewTopic) -> None:
    topic = new_topic("growing", partitions=2)
    assert topics("alter", topic, "-p", "4", "--dry-run").out == f"would grow {topic}: 2 → 4 partitions\n"
    done = topics("alter", topic, "-p", "4")
    assert (done.code, done.out) == (0, f"grew {topic}: 2 → 4 partitions\n")
    assert "another partition" in done.err
    eventually(lambda: topics.json("list", topic)[0]["partitions"] == 4)
    assert topics("alter", topic, "-p", "3").code == 1


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ((), 2, "nothing to change"),
        (("-c", "a=1", "-u", "a"), 2, "a is both set and unset"),
        (("-c", "no.such.setting=1"), 1, "no.such.setting"),
        (("-c", "retention.ms=often"), 1, "retention.ms"),
    ],
)
def test_alter_says_what_cannot_be(
    topics: Topics, written: str, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = topics("alter", written, *arguments)
    assert (done.code, done.out) == (code, "")
    assert told in done.err


# ---- looks


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_fit_the_terminal(topics: Topics, written: str, columns: int) -> None:
    for arguments in (
        ("list", written),
        ("describe", written, "-s"),
        ("offsets", written, "--at", "-1h", "--at", "-3"),
    ):
        done = topics.in_terminal(columns, *arguments)
        assert done.code == 0
        assert max(map(len, done.out.splitlines())) <= columns
        assert "…" not in done.out


def test_a_long_name_is_shown_whole(topics: Topics, fresh_name: str) -> None:
    name = fresh_name + "x" * (249 - len(fresh_name))
    assert topics("create", name, "-p", "1").code == 0
    eventually(lambda: topics("list", "-q", name).out == f"{name}\n")
    shown = topics.in_terminal(80, "list", name).out.splitlines()
    assert max(map(len, shown)) <= 80
    assert "".join(line.split()[0] for line in shown[1:]) == name
    assert topics("list", name).out.splitlines()[1].startswith(f"{name}  ")


def test_names_with_markup_and_control_characters_are_shown_as_text(topics: Topics) -> None:
    for name in ("\x1b[31mred", "[bold]no[/bold]", "\u202eturned"):
        done = topics("describe", name)
        assert done.code == 1
        assert "\x1b" not in done.err
        assert "\u202e" not in done.err
    assert "[bold]no[/bold]" in topics("describe", "[bold]no[/bold]").err


# ---- finding the broker


@pytest.fixture
def port() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def test_where_nobody_listens_is_told_soon_with_the_way_out(port: int) -> None:
    done = lowwater("topics", "list", "-b", f"127.0.0.1:{port}")
    assert done.code == 1
    assert f"127.0.0.1:{port} refuses connections; `lowwater broker` starts a broker; -b says where" in done.err


def test_what_is_no_broker_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        done = lowwater("topics", "list", "-b", f"127.0.0.1:{server.getsockname()[1]}")
    assert done.code == 1
    assert "it speaks HTTP; -b has to name the port of a Kafka broker" in done.err


def test_tls_at_a_port_without_it_is_told(broker: UnderTest) -> None:
    done = lowwater("topics", "list", "-b", broker.bootstrap, "-X", "security.protocol=SSL")
    assert done.code == 1
    assert broker.bootstrap in done.err
    assert "perhaps this port is without TLS: try -X security.protocol=PLAINTEXT" in done.err


def test_the_broker_is_found_by_option_by_variable_and_by_file(
    broker: UnderTest, written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    file = tmp_path / "client.conf"
    file.write_text(f"# ours\nmetadata.broker.list = {broker.bootstrap}\nclient.id=me\n")
    found = (0, f"{written}\n", "")

    def listed(*arguments: str) -> tuple[int, str, str]:
        done = lowwater("topics", "list", "-q", written, *arguments)
        return done.code, done.out, done.err

    assert listed("-F", str(file)) == found
    assert listed("-X", f"bootstrap.servers={broker.bootstrap}") == found
    monkeypatch.setenv("LOWWATER_CONFIG", str(file))
    assert listed() == found
    monkeypatch.setenv("LOWWATER_CONFIG", str(tmp_path / "none"))
    assert listed()[0] == 2
    monkeypatch.delenv("LOWWATER_CONFIG")
    monkeypatch.setenv("LOWWATER_BOOTSTRAP", broker.bootstrap)
    assert listed() == found
    monkeypatch.setenv("LOWWATER_BOOTSTRAP", "localhost:1")
    assert listed("-F", str(file)) == found, "what stands on the command line counts more"
    assert listed("-X", f"bootstrap.servers={broker.bootstrap}") == found
    assert listed("-b", broker.bootstrap) == found
    monkeypatch.delenv("LOWWATER_BOOTSTRAP")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config" / "lowwater.conf").write_text(file.read_text())
    assert listed() == found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-X", "security.protocl=SSL"), "did you mean security.protocol?"),
        (("-X", "client.id"), "-X takes NAME=VALUE, not 'client.id'"),
        (("-X", "sasl.username=me"), "a login is given, but security.protocol is PLAINTEXT"),
        (("-b", "localhost:http"), "'localhost:http', which is not host:port"),
        (("-F", "/nowhere/at.all"), "cannot read the settings in /nowhere/at.all: No such file or directory"),
        (("--json", "--csv"), "give one of them"),
        (("--jsn",), "No such option"),
    ],
)
def test_a_wrong_command_line_exits_with_2_and_says_why(arguments: tuple[str, ...], told: str) -> None:
    done = lowwater("topics", "list", *arguments)
    assert done.code == 2
    assert told in done.err


def test_a_setting_without_meaning_here_is_told_and_left_alone(topics: Topics, written: str) -> None:
    done = topics("list", "-q", written, "-X", "statistics.interval.ms=5")
    assert (done.code, done.out) == (0, f"{written}\n")
    assert done.err == "lowwater: the setting statistics.interval.ms has no meaning here and is ignored\n"
