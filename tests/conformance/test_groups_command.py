"""`lowwater groups` against the broker under test, with groups of both protocols, and beside Kafka's own tool."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.conformance.asking import eventually, now_ms
from tests.conformance.command_line import Done, in_terminal, lowwater, no_settings_of_the_user
from tests.conformance.conftest import NewTopic
from tests.conformance.test_console_tools import Tools
from tests.conformance.under_test import UnderTest
from tests.fresh import fresh

from lowwater import Admin
from lowwater.client.blocking import BlockingDriver
from lowwater.client.group_offsets import Committed
from lowwater.lag.collecting import report
from lowwater.types import TopicPartition

__all__ = ["no_settings_of_the_user"]

KAFKAS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
STAMP = 1_700_000_000_000
LIMIT_S = 60
WRONG = 3


class Groups:
    """`lowwater groups VERB …` at the broker under test."""

    def __init__(self, broker: UnderTest) -> None:
        self._at = ("-b", broker.bootstrap)

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        return lowwater("groups", *arguments, *self._at, stdin=stdin)

    def json(self, *arguments: str, code: int = 0) -> Any:
        done = self(*arguments, "--json")
        assert done.code == code, done
        return json.loads(done.out)

    def csv(self, *arguments: str, code: int = 0) -> list[dict[str, str]]:
        done = self(*arguments, "--csv")
        assert done.code == code, done
        return list(csv.DictReader(io.StringIO(done.out)))

    def moves(self, *arguments: str) -> list[tuple[int, int | None, int | None]]:
        return [(row["partition"], row["before"], row["after"]) for row in self.json(*arguments)]

    def in_terminal(self, columns: int, *arguments: str) -> Done:
        return in_terminal(columns, "groups", *arguments, *self._at)


@pytest.fixture
def groups(broker: UnderTest) -> Groups:
    return Groups(broker)


@pytest.fixture(scope="module")
def admin(broker: UnderTest) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as found:
        yield found


@pytest.fixture(scope="module")
def written(broker: UnderTest, new_topic: NewTopic, admin: Admin) -> str:
    """Partition 0 has offsets 4 to 10, partition 1 0 to 10, partition 2 is empty. The record at n is of STAMP + n."""
    topic = new_topic("lagging", partitions=3, **{"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        for partition in (0, 1):
            producer.produce(topic, b"x", partition=partition, timestamp=STAMP + number)
    assert producer.flush(LIMIT_S) == 0
    admin.delete_records({TopicPartition(topic, 0): 4}).checked()
    return topic


@pytest.fixture
def group(written: str, admin: Admin) -> str:
    """Has read partition 0 up to 6 (with a note and an epoch), 1 up to 8, and never committed 2."""
    name = fresh("group")
    offsets = {TopicPartition(written, 0): Committed(6, 0, "a note"), TopicPartition(written, 1): Committed(8)}
    admin.alter_group_offsets(name, offsets).checked()
    return name


Join = Callable[..., Consumer]


@pytest.fixture
def join(broker: UnderTest) -> Iterator[Join]:
    """A member of a group that has its partitions; it leaves when the test ends."""
    members: list[Consumer] = []

    def joined(group: str, topic: str, protocol: str = "classic", **config: Any) -> Consumer:
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol}
        consumer = Consumer({**settings, "enable.auto.commit": False, "client.id": f"{group}-app", **config})
        members.append(consumer)
        consumer.subscribe([topic])
        eventually(lambda: (consumer.poll(0.05), consumer.assignment())[1] != [])
        return consumer

    yield joined
    for consumer in members:
        consumer.close()


def committed(admin: Admin, group: str) -> dict[int, Committed]:
    return {one.partition: each for one, each in admin.group_offsets([group])[group].items()}


# ---- list and describe


def test_groups_are_listed_with_state_and_kind(groups: Groups, group: str) -> None:
    [row] = groups.json("list", group)
    assert (row["group"], row["state"], row["kind"]) == (group, "Empty", "classic")
    assert groups("list", "-q", f"{group[:-1]}*").out.splitlines().count(group) == 1
    assert groups.json("list", group, "--state", "Stable") == []


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_are_described_with_what_they_read(groups: Groups, written: str, join: Join, protocol: str) -> None:
    group = fresh("described")
    join(group, written, protocol)
    eventually(lambda: groups.json("describe", group)[0]["state"] == "Stable")
    [found] = groups.json("describe", group)
    assert (found["group"], found["kind"]) == (group, protocol)
    [member] = found["members"]
    assert member["client_id"] == f"{group}-app"
    assert [one["partition"] for one in member["partitions"]] == [0, 1, 2]
    shown = groups("describe", group).out
    assert f"{group}  Stable, {protocol} protocol, 1 member" in shown
    assert f"{written} 0-2" in shown


def test_a_group_that_is_not_there_is_told_with_one_that_is(groups: Groups, group: str) -> None:
    done = groups("describe", group + "x")
    assert done.code == 1
    assert f"there is no group '{group}x'; did you mean " in done.err


# ---- lag


def test_lag_has_the_form_that_programs_expect(groups: Groups, group: str, written: str) -> None:
    found = groups.json("lag", group)
    assert list(found)[:4] == ["group", "state", "status", "lag"]
    assert (found["group"], found["state"], found["status"], found["lag"]) == (group, "Empty", None, 6)
    first, second = found["partitions"]
    assert list(first)[:7] == ["topic", "partition", "committed", "end", "lag", "time_lag_ms", "status"]
    assert (first["topic"], first["partition"], first["committed"], first["end"], first["lag"]) == (
        written, 0, 6, 10, 4,
    )  # fmt: skip
    assert (second["committed"], second["end"], second["lag"], second["status"]) == (8, 10, 2, None)
    assert first["rate_in"] is None
    assert isinstance(groups.json("lag", group, group[:-1] + "*"), list)


def test_time_lag_is_the_age_of_the_record_at_the_committed_offset(admin: Admin, group: str) -> None:
    found = admin._run(report(admin._cluster, [group]))
    first, second = found.groups[group].partitions
    assert first.time_lag_ms == found.at_ms - (STAMP + 6)
    assert second.time_lag_ms == found.at_ms - (STAMP + 8)
    assert found.groups[group].time_lag_ms == first.time_lag_ms


def test_the_log_of_commits_tells_a_group_that_stopped_by_one_look(
    groups: Groups, group: str, written: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    began_ms = now_ms()
    for offset in (7, 8):
        admin.alter_group_offsets(group, {TopicPartition(written, 0): offset}).checked()
    monkeypatch.setattr(BlockingDriver, "now_ms", lambda _: began_ms)
    assert groups.json("lag", group)["status"] is None, "it has only just committed"
    monkeypatch.setattr(BlockingDriver, "now_ms", lambda _: began_ms + 600_000)
    found = groups.json("lag", group, code=WRONG)
    assert found["status"] == "STOP"
    assert found["recommendation"]["action"] == "scale"
    assert found["partitions"][0]["last_commit_ms"] >= began_ms - 5000


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_lag_names_member_host_and_client(groups: Groups, written: str, join: Join, protocol: str) -> None:
    group = fresh("read")
    consumer = join(group, written, protocol, **{"auto.offset.reset": "earliest"})
    read = 0
    while read < 16:
        read += consumer.poll(1) is not None
    consumer.commit(asynchronous=False)
    found = groups.json("lag", group)
    assert (found["status"], found["lag"], found["members"], found["time_lag_ms"]) == ("OK", 0, 1, 0)
    first = found["partitions"][0]
    assert first["client_id"] == f"{group}-app"
    assert first["host"].startswith("/127.0.0.1")
    assert first["member_id"]
    empty = found["partitions"][2]
    assert (empty["committed"], empty["lag"]) in ((None, 0), (0, 0))


def test_markers_of_transactions_at_the_end_are_nothing_to_read(
    broker: UnderTest, groups: Groups, new_topic: NewTopic, admin: Admin
) -> None:
    topic, group = new_topic("markers"), fresh("markers")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": topic})
    producer.init_transactions(LIMIT_S)
    for ends in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, b"x", partition=0, timestamp=STAMP)
        producer.flush(LIMIT_S)
        ends(LIMIT_S)
    admin.alter_group_offsets(group, {TopicPartition(topic, 0): 1}).checked()
    [only] = groups.json("lag", group)["partitions"]
    assert (only["committed"], only["end"], only["lag"], only["time_lag_ms"], only["status"]) == (1, 4, 0, 0, "OK")
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=0, timestamp=STAMP + 5)
    producer.flush(LIMIT_S)
    [only] = groups.json("lag", group)["partitions"]
    assert (only["lag"], only["problem"]) == (4, "open_transaction")
    assert only["time_lag_ms"] > 0
    producer.abort_transaction(LIMIT_S)
    assert groups.json("lag", group)["lag"] == 0


def test_offsets_that_aged_out_are_named(groups: Groups, group: str, written: str, admin: Admin) -> None:
    admin.alter_group_offsets(group, {TopicPartition(written, 0): 1}).checked()
    found = groups.json("lag", group, code=WRONG)
    first = found["partitions"][0]
    assert (first["problem"], first["lost"], first["lag"]) == ("aged_out", 3, 6)
    assert found["recommendation"]["action"] == "reset"
    assert "3 records were deleted before the group read them" in groups("lag", group).out


def test_offsets_beyond_the_end_are_named_and_lag_is_not_negative(
    groups: Groups, group: str, written: str, admin: Admin
) -> None:
    admin.alter_group_offsets(group, {TopicPartition(written, 0): 99}).checked()
    first = groups.json("lag", group, code=WRONG)["partitions"][0]
    assert (first["problem"], first["lag"], first["time_lag_ms"], first["status"]) == ("beyond_end", None, None, None)


def test_the_forms_of_lag_say_the_same(groups: Groups, group: str) -> None:
    document, rows = groups.json("lag", group), groups.csv("lag", group)
    for one, row in zip(document["partitions"], rows, strict=True):
        assert row["group"] == group
        same = ("topic", "partition", "committed", "end", "lag", "status")
        assert {name: row[name] for name in same} == {
            name: "" if one[name] is None else str(one[name]) for name in same
        }
    headline, head, *_ = groups("lag", group).out.splitlines()
    assert headline.startswith(f"{group}  Empty, 0 members, lag 6, time lag ")
    assert head.split()[:5] == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    [row] = [each for each in groups("lag").out.splitlines() if each.startswith(group)]
    assert row.split()[:4] == [group, "Empty", "0", "6"]


def test_watching_for_a_while_finds_rates(groups: Groups, group: str) -> None:
    found = groups.json("lag", group, "--watch-for", "1s")
    assert found["partitions"][0]["rate_in"] == 0.0


def test_the_exit_code_says_whether_it_is_too_late(groups: Groups, group: str) -> None:
    assert groups("lag", group, "--allowed", "4").code == 0
    assert groups.json("lag", group, "--allowed", "4")["status"] == "OK"
    assert groups("lag", group, "--max-time-lag", "5m").code == WRONG
    assert groups("lag", group, "--max-time-lag", "5000w").code == 0
    assert groups("lag", group, "--max-time-lag", "soon").code == 2


# ---- reset


@pytest.mark.parametrize(
    ("to", "expected"),
    [("earliest", [4, 0, 0]), ("latest", [10, 10, 0]), ("-3", [7, 7, 0]), ("5", [5, 5, 0]), ("2", [4, 2, 0]),
     ("99", [10, 10, 0]), (f"s@{STAMP + 5}", [5, 5, 0]), ("-1h", [10, 10, 0]), ("stored|earliest", [6, 8, 0])],
)  # fmt: skip
def test_a_reset_leads_where_the_position_says_within_the_log(
    groups: Groups, group: str, written: str, admin: Admin, to: str, expected: list[int]
) -> None:
    assert groups.moves("reset", group, "--topic", written, "--to", to) == [
        (0, 6, expected[0]), (1, 8, expected[1]), (2, None, expected[2]),
    ]  # fmt: skip
    assert committed(admin, group) == {0: Committed(6, 0, "a note"), 1: Committed(8)}, "a dry run changes nothing"


@pytest.mark.parametrize(
    ("wish", "expected"),
    [(("--shift", "-1"), {0: 5, 1: 7}), (("--shift", "+2"), {0: 8, 1: 10}), (("--shift", "-100"), {0: 4, 1: 0}),
     (("--to", "stored+1"), {0: 7, 1: 9}), (("--to", "stored-2"), {0: 4, 1: 6})],
)  # fmt: skip
def test_a_shift_counts_from_where_the_group_is(
    groups: Groups, group: str, admin: Admin, wish: tuple[str, ...], expected: dict[int, int]
) -> None:
    done = groups("reset", group, "--all-topics", *wish, "--execute")
    assert done.code == 0, done
    assert {one: each.offset for one, each in committed(admin, group).items()} == expected


def test_a_reset_of_a_topic_that_is_not_chosen_is_refused(groups: Groups, group: str, written: str) -> None:
    done = groups("reset", group, "--topic", written, "--to", f"latest,{written}x=earliest", "--execute")
    assert done.code == 1
    assert f"the position names '{written}x', which is not asked for; did you mean '{written}'?" in done.err


def test_single_partitions_are_reset(groups: Groups, group: str, written: str, admin: Admin) -> None:
    groups.json("reset", group, "--topic", f"{written}:1,2", "--to", "earliest", "--execute")
    assert committed(admin, group) == {0: Committed(6, 0, "a note"), 1: Committed(0), 2: Committed(0)}


def test_a_reset_shows_old_and_new_and_says_that_nothing_was_changed(groups: Groups, group: str, written: str) -> None:
    done = groups("reset", group, "--topic", f"{written}:0", "--to", "99")
    assert done.code == 0
    head, row = done.out.splitlines()
    assert head.split() == ["GROUP", "TOPIC", "PARTITION", "OLD", "NEW", "NOTE"]
    assert row.split()[2:6] == ["0", "6", "→", "10"]
    assert row.endswith("99 is not within [4, 10]")
    assert done.err == "lowwater: nothing was changed: say --execute to do this\n"


def test_a_partition_without_an_offset_cannot_be_shifted(groups: Groups, group: str, written: str) -> None:
    done = groups("reset", group, "--topic", written, "--shift", "1")
    assert done.code == 1
    assert f"{written}-2: there is no committed offset to shift" in done.err


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_active_group_is_refused_with_its_members(
    groups: Groups, written: str, join: Join, admin: Admin, protocol: str
) -> None:
    group = fresh("active")
    join(group, written, protocol).commit(offsets=None, asynchronous=True)
    for verb in (("reset", group, "--topic", written, "--to", "latest"), ("delete", group)):
        for more in ((), ("--execute",)):
            done = groups(*verb, *more)
            assert done.code == 1
            assert f"group '{group}' is active: {group}-app at /127.0.0.1" in done.err
            assert "stop its members first" in done.err
    assert committed(admin, group) == {}
    assert groups("history", group).out == ""


def test_what_cannot_be_meant_is_refused(groups: Groups, group: str, written: str) -> None:
    for arguments in (
        (group,),
        (group, "--topic", written),
        (group, "--to", "earliest"),
        ("--topic", written, "--to", "earliest"),
        (group, "--topic", written, "--to", "earliest", "--shift", "1"),
        (group, "--topic", written, "--all-topics", "--to", "earliest"),
        (group, "--topic", written, "--shift", "much"),
        (group, "--topic", f"{written}:x", "--to", "earliest"),
        (group, "--topic", written, "--to", "yesterday"),
        (group, "--all-groups", "--topic", written, "--to", "earliest"),
    ):
        assert groups("reset", *arguments).code == 2, arguments


def test_a_topic_that_is_not_there_is_told(groups: Groups, group: str) -> None:
    done = groups("reset", group, "--topic", "nowhere-at-all", "--to", "earliest")
    assert done.code == 1
    assert "nowhere-at-all" in done.err


def test_a_topic_that_is_not_there_is_told_with_one_that_sounds_alike(groups: Groups, group: str, written: str) -> None:
    done = groups("reset", group, "--topic", written[:-1], "--to", "earliest")
    assert done.code == 1
    assert f"no topic is called '{written[:-1]}'; did you mean " in done.err
    assert "topics create" not in done.err


# ---- undo and history


def test_undo_brings_back_exactly_what_was_there(groups: Groups, group: str, written: str, admin: Admin) -> None:
    before = committed(admin, group)
    groups.json("reset", group, "--topic", written, "--to", "latest", "--execute")
    assert {one: each.offset for one, each in committed(admin, group).items()} == {0: 10, 1: 10, 2: 0}
    assert groups("undo", group).code == 0
    assert committed(admin, group)[0].offset == 10, "a dry run changes nothing"
    groups.json("undo", group, "--execute")
    assert committed(admin, group) == before
    groups.json("undo", group, "--execute")
    assert {one: each.offset for one, each in committed(admin, group).items()} == {0: 10, 1: 10, 2: 0}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_members_have_left_is_reset_and_undone(
    groups: Groups, written: str, join: Join, admin: Admin, protocol: str
) -> None:
    group = fresh("left")
    consumer = join(group, written, protocol)
    consumer.commit(offsets=[_offset(written, 0, 5), _offset(written, 1, 3)], asynchronous=False)
    consumer.close()
    eventually(lambda: groups.json("list", group)[0]["state"] == "Empty")
    before = committed(admin, group)
    groups.json("reset", group, "--topic", written, "--to", "latest", "--execute")
    assert {one: each.offset for one, each in committed(admin, group).items()} == {0: 10, 1: 10, 2: 0}
    groups.json("undo", group, "--execute")
    assert committed(admin, group) == before
    groups.json("delete", group, "--execute")
    assert groups.json("list", group) == []


def test_history_tells_when_who_and_what(groups: Groups, group: str, written: str) -> None:
    began_ms = now_ms()
    groups.json("reset", group, "--topic", f"{written}:0", "--to", "latest", "--execute")
    groups.json("undo", group, "--execute")
    undo, reset = groups.json("history", group)
    assert (reset["verb"], undo["verb"], undo["undoes"]) == ("reset", "undo", reset["id"])
    assert (reset["outcome"], undo["outcome"]) == ("done", "done")
    assert began_ms - 1 <= reset["at_ms"] <= undo["at_ms"] <= now_ms()
    assert "@" in reset["who"]
    assert reset["partitions"] == [{"topic": written, "partition": 0, "before": 6, "after": 10}]
    head, *rows = groups("history", group).out.splitlines()
    assert head.split()[:2] == ["CHANGE", "WHEN"]
    assert [row.split()[0] for row in rows] == [undo["id"], reset["id"]]


def test_an_older_change_is_undone_by_its_id(groups: Groups, group: str, written: str, admin: Admin) -> None:
    for to in ("5", "9"):
        groups.json("reset", group, "--topic", f"{written}:0", "--to", to, "--execute")
    first = groups.json("history", group)[-1]["id"]
    groups.json("undo", group, "--change", first, "--execute")
    assert committed(admin, group)[0] == Committed(6, 0, "a note")


def test_without_a_change_there_is_nothing_to_undo(groups: Groups, group: str) -> None:
    done = groups("undo", group)
    assert done.code == 1
    assert "nothing was changed that could be undone" in done.err


def test_a_deleted_group_comes_back(groups: Groups, group: str, admin: Admin) -> None:
    before = committed(admin, group)
    assert groups("delete", group).code == 0
    assert committed(admin, group) == before
    groups.json("delete", group, "--execute")
    assert committed(admin, group) == {}
    groups.json("undo", group, "--execute")
    assert committed(admin, group) == before


def test_deleted_offsets_come_back(groups: Groups, group: str, written: str, admin: Admin) -> None:
    before = committed(admin, group)
    groups.json("delete-offsets", group, "--topic", f"{written}:0", "--execute")
    assert set(committed(admin, group)) == {1}
    groups.json("undo", group, "--execute")
    assert committed(admin, group) == before
    assert groups("delete-offsets", group).code == 2


def test_offsets_of_a_topic_that_is_being_read_are_not_deleted(groups: Groups, written: str, join: Join) -> None:
    group = fresh("reading")
    join(group, written, **{"auto.offset.reset": "earliest"}).commit(
        offsets=[_offset(written, 0, 5)], asynchronous=False
    )
    done = groups("delete-offsets", group, "--topic", written, "--execute")
    assert done.code == 1
    assert "the group still reads this topic" in done.err


def _offset(topic: str, partition: int, offset: int) -> Any:
    from confluent_kafka import TopicPartition as Theirs

    return Theirs(topic, partition, offset)


# ---- a group that follows a Spark job


def test_a_group_of_a_spark_job_is_set_only_when_forced(groups: Groups, written: str, admin: Admin) -> None:
    group, mine = fresh("spark"), {TopicPartition(written, 0): Committed(6, metadata="lowwater:0a1b2c3d")}
    admin.alter_group_offsets(group, mine).checked()
    assert groups.json("lag", group)["spark_lineages"] == ["0a1b2c3d"]
    wish = ("reset", group, "--topic", f"{written}:0", "--to", "earliest", "--execute")
    done = groups(*wish)
    assert done.code == 1
    assert "the job's checkpoint says where it goes on" in done.err
    assert "`lowwater pipeline reset FILE --to POSITION`" in done.err
    assert committed(admin, group)[0].offset == 6
    assert groups(*wish, "--force").code == 0
    assert committed(admin, group)[0].offset == 4
    assert groups.json("undo", group, "--execute", "--force")[0]["after"] == 6
    assert committed(admin, group)[0].metadata == "lowwater:0a1b2c3d"


# ---- files


def test_offsets_go_out_to_a_file_and_in_from_it(
    groups: Groups, group: str, written: str, admin: Admin, tmp_path: Path
) -> None:
    done = groups("export", group)
    assert done.out == f"{written},0,6\n{written},1,8\n"
    copy = fresh("copy")
    assert groups("import", copy, "--execute", stdin=done.out).code == 0
    assert committed(admin, copy) == {0: Committed(6), 1: Committed(8)}
    both = tmp_path / "both.csv"
    both.write_text(groups("export", group, copy).out)
    assert both.read_text().count(f",{written},") == 4
    for name in (group, copy):
        groups.json("reset", name, "--topic", written, "--to", "latest", "--execute")
    assert groups("reset", "--from-file", str(both), "--execute").code == 0
    assert [committed(admin, name)[1].offset for name in (group, copy)] == [8, 8]
    assert groups("import", group, "--from-file", str(both)).code == 2
    assert groups("import", group, "--from-file", str(tmp_path / "none")).code == 2


def test_the_plan_of_a_reset_is_such_a_file(groups: Groups, group: str, written: str, admin: Admin) -> None:
    plan = groups("reset", group, "--topic", written, "--to", "earliest", "--export")
    assert plan.out == f"{written},0,4\n{written},1,0\n{written},2,0\n"
    assert committed(admin, group)[0].offset == 6
    assert groups("reset", group, "--from-file", "-", "--execute", stdin=plan.out).code == 0
    assert {one: each.offset for one, each in committed(admin, group).items()} == {0: 4, 1: 0, 2: 0}


@pytest.mark.peer("kafka")
def test_kafkas_own_tool_reads_our_files_and_we_read_its(
    broker: UnderTest, groups: Groups, group: str, written: str, admin: Admin, tmp_path: Path
) -> None:
    tools, file = Tools(broker), tmp_path / "offsets.csv"
    exported = groups("export", group).out
    groups.json("reset", group, "--topic", written, "--to", "latest", "--execute")
    file.write_text(exported)
    wish = ("--timeout", "60000", "--reset-offsets", "--group", group)
    tools.run(KAFKAS, *wish, "--from-file", str(file), "--execute")
    assert [committed(admin, group)[one].offset for one in (0, 1)] == [6, 8]
    theirs = tools.run(KAFKAS, *wish, "--topic", written, "--to-earliest", "--export", "--dry-run")
    assert groups("import", group, "--execute", stdin=theirs).code == 0
    assert {one: each.offset for one, each in committed(admin, group).items()} == {0: 4, 1: 0, 2: 0}


@pytest.mark.peer("kafka")
def test_kafkas_own_tool_shows_the_same_lag(broker: UnderTest, groups: Groups, group: str, written: str) -> None:
    described = Tools(broker).run(KAFKAS, "--timeout", "60000", "--describe", "--group", group)
    theirs = {tuple(line.split()[1:6]) for line in described.splitlines() if line.startswith(group)}
    ours = {
        (one["topic"], *(str(one[name]) for name in ("partition", "committed", "end", "lag")))
        for one in groups.json("lag", group)["partitions"]
    }
    assert ours == theirs


# ---- names


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_fit_the_terminal(groups: Groups, group: str, written: str, columns: int) -> None:
    groups.json("reset", group, "--topic", written, "--to", "earliest", "--execute")
    groups.json("undo", group, "--execute")
    for arguments in (("lag", group), ("lag",), ("history", group)):
        shown = groups.in_terminal(columns, *arguments).out
        lines = [line for line in shown.splitlines() if not line.startswith("  recommended: ")]
        assert len(lines) > 1
        assert max(map(len, lines)) <= columns
        assert "…" not in shown


def test_control_characters_in_names_never_reach_the_terminal(groups: Groups, written: str, admin: Admin) -> None:
    name = fresh("evil") + "\x1b[31m\x07"
    admin.alter_group_offsets(name, {TopicPartition(written, 0): Committed(6)}).checked()
    for arguments in (("list",), ("lag",), ("lag", name), ("reset", name, "--all-topics", "--to", "latest")):
        done = groups.in_terminal(200, *arguments)
        assert "\\x1b[31m\\x07" in done.out, arguments
        assert "\x07" not in done.out
    assert groups.json("lag", name)["group"] == name
