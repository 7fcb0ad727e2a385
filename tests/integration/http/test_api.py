"""The JSON API, asked as any program would, on what other clients did."""

from __future__ import annotations

import time

import pytest
from tests.fresh import fresh
from tests.integration.http.served import Cluster, Served, group_path, until

from lowwater import Admin, TopicPartition
from lowwater.client.group_offsets import Committed

NOW_MS = int(time.time() * 1000)


def test_the_cluster_answers_and_says_so(served: Served) -> None:
    assert served.get("/healthz") == {"ok": True}
    told = served.get("/cluster")
    assert [f"{one['host']}:{one['port']}" for one in told["brokers"]] == [served.bootstrap]


@pytest.mark.only_against("lowwater")
def test_the_broker_beside_it_tells_what_it_counts(served: Served) -> None:
    assert served.get("/cluster")["counters"]["requests"]["ApiVersions"] >= 1
    assert 'lowwater_broker_requests_total{api="Metadata"}' in served.get("/metrics")


# ---- RustLog's three operations


def test_an_offset_that_was_committed_is_fetched_and_one_that_was_not_is_null(served: Served, cluster: Cluster) -> None:
    orders, group = cluster.create(fresh("orders")), fresh("order-processor")
    path = group_path(group, f"/offsets/{orders}/0")
    assert served.get(path) == {"offset": None}
    answer = served.ask("PUT", path, {"offset": 1500})
    assert (answer.status, answer.body) == (200, {"offset": 1500})
    assert served.get(path) == {"offset": 1500}
    assert served.ask("PUT", path, {"offset": 1501}).body == {"offset": 1501}
    assert cluster.committed(group, orders) == [1501]
    assert served.get(group_path("another-" + group, f"/offsets/{orders}/0")) == {"offset": None}


@pytest.mark.parametrize("place", ["no-such-topic/0", "{topic}/7"])
def test_committing_where_there_is_no_partition_is_refused_and_stores_nothing(
    served: Served, cluster: Cluster, place: str
) -> None:
    path = group_path(fresh("g"), f"/offsets/{place.format(topic=cluster.create(fresh('t')))}")
    answer = served.ask("PUT", path, {"offset": 3})
    assert (answer.status, answer.body["error"]["code"]) == (404, "UNKNOWN_TOPIC_OR_PARTITION")
    assert served.get(path) == {"offset": None}


@pytest.mark.parametrize(("requested", "committed", "used"), [(100, None, 100), (100, 150, 150), (200, 150, 200)])
def test_a_fetch_with_a_group_starts_at_the_further_of_both_offsets(
    served: Served, cluster: Cluster, requested: int, committed: int | None, used: int
) -> None:
    topic, group = cluster.create(fresh("orders")), fresh("g")
    cluster.write(topic, [b"%d" % one for one in range(210)])
    if committed is not None:
        cluster.commit(group, topic, {0: committed})
    told = served.get(f"/topics/{topic}/partitions/0/records?offset={requested}&group={group}")
    assert told["records"][0]["offset"] == used
    assert told["records"][0]["value"] == str(used)
    assert told["next_offset"] == 210
    assert cluster.committed(group, topic) == [-1001 if committed is None else committed]


def test_a_fetch_without_a_group_starts_where_it_was_told(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("orders"))
    cluster.write(topic, [b"a", b"b"], at_ms=NOW_MS, key=b"k", headers=[("h", b"1"), ("h", None)])
    assert served.get(f"/topics/{topic}/partitions/0/records?offset=1") == {
        "records": [{"offset": 1, "timestamp": NOW_MS, "key": "k", "value": "b", "headers": [["h", "1"], ["h", None]]}],
        "next_offset": 2,
    }
    assert served.get(f"/topics/{topic}/partitions/0/records?offset=2") == {"records": [], "next_offset": 2}


def test_an_offset_outside_the_log_names_both_bounds(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("orders"))
    cluster.write(topic, [b"a", b"b"])
    answer = served.ask("GET", f"/topics/{topic}/partitions/0/records?offset=9")
    assert (answer.status, answer.body["error"]["code"]) == (416, "OFFSET_OUT_OF_RANGE")
    assert "from 0 to 2" in answer.body["error"]["message"]


def test_bytes_that_are_no_text_come_as_base64(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("bytes"))
    cluster.write(topic, [b"\xff\x00"])
    [record] = served.get(f"/topics/{topic}/partitions/0/records")["records"]
    assert record["value"] == {"base64": "/wA="}


# ---- groups


def test_lag_and_time_lag_are_those_of_the_log(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t"), 2), fresh("g")
    then_ms = int(time.time() * 1000) - 3_600_000
    cluster.write(topic, [b"x"] * 10, at_ms=then_ms)
    cluster.commit(group, topic, {0: 4, 1: 0})
    told = served.get(group_path(group, "/lag"))
    assert (told["group"], told["state"], told["lag"]) == (group, "Empty", 6)
    first, second = told["partitions"]
    assert (first["committed"], first["end"], first["lag"]) == (4, 10, 6)
    assert 3_600_000 <= first["time_lag_ms"] < 3_600_000 + 600_000
    assert (second["lag"], second["time_lag_ms"]) == (0, 0)


def test_members_are_shown_with_what_they_read(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t"), 3), fresh("g")
    member = cluster.member(group, topic, **{"client.id": "reader-one"})
    try:
        told = served.get(group_path(group, "/assignments"))
        [one] = told["members"]
        assert told["state"] == "Stable"
        assert one["client_id"] == "reader-one"
        assert one["partitions"] == [{"topic": topic, "partition": each} for each in range(3)]
    finally:
        member.close()


def test_a_group_that_is_not_there_is_404(served: Served) -> None:
    for rest in ("", "/lag", "/assignments"):
        assert served.ask("GET", group_path(fresh("nobody"), rest)).status == 404


def test_groups_come_in_pages_and_by_prefix(served: Served, cluster: Cluster) -> None:
    topic, prefix = cluster.create(fresh("t")), fresh("paged")
    names = [f"{prefix}-{one}" for one in range(5)]
    for name in names:
        cluster.commit(name, topic, {0: 0})
    until(lambda: served.get(f"/consumer-groups?prefix={prefix}")["total"] == 5, "all are seen")
    found, after = [], ""
    while True:
        told = served.get(f"/consumer-groups?prefix={prefix}&limit=2{after}")
        found += [one["group"] for one in told["groups"]]
        if told["next"] is None:
            break
        after = f"&after={told['next']}"
    assert found == names


def test_names_may_hold_slashes_markup_and_control_characters(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), f"<b>/../\x1b[31m{fresh('ü')}?#%"
    cluster.commit(group, topic, {0: 0})
    assert served.get(group_path(group, "/lag"))["group"] == group
    assert served.get(group_path(group, f"/offsets/{topic}/0")) == {"offset": 0}


def test_pages_go_on_behind_a_group_that_went_meanwhile(served: Served, cluster: Cluster) -> None:
    topic, prefix = cluster.create(fresh("t")), fresh("leaving")
    names = [f"{prefix}-{one}" for one in range(4)]
    for name in names:
        cluster.commit(name, topic, {0: 0})
    until(lambda: served.get(f"/consumer-groups?prefix={prefix}")["total"] == 4, "all are seen")
    first = served.get(f"/consumer-groups?prefix={prefix}&limit=2&sort=lag")
    assert served.ask("DELETE", group_path(names[1])).status == 200
    until(lambda: served.get(f"/consumer-groups?prefix={prefix}")["total"] == 3, "one is gone")
    second = served.get(f"/consumer-groups?prefix={prefix}&limit=2&sort=lag&after={first['next']}")
    assert [one["group"] for one in (*first["groups"], *second["groups"])] == names
    assert served.ask("GET", "/consumer-groups?after=rubbish").status == 400


# ---- changes


def test_a_reset_is_previewed_then_done_then_undone(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t"), 2), fresh("g")
    cluster.write(topic, [b"x"] * 10)
    cluster.commit(group, topic, {0: 4})
    wanted = {"to": "latest"}
    preview = served.ask("POST", group_path(group, "/reset"), wanted).body
    assert (preview["executed"], preview["change"]) == (False, None)
    assert preview["moved"] == [{"topic": topic, "partition": 0, "old": 4, "new": 10, "note": ""}]
    assert cluster.committed(group, topic) == [4]
    done = served.ask("POST", group_path(group, "/reset"), {**wanted, "execute": True}).body
    assert done["executed"] is True
    assert cluster.committed(group, topic) == [10]
    [change] = served.get(group_path(group, "/changes"))["changes"]
    assert (change["id"], change["verb"], change["outcome"]) == (done["change"], "reset", "done")
    undone = served.ask("POST", group_path(group, "/undo"), {"change": done["change"]})
    assert undone.status == 200
    assert cluster.committed(group, topic) == [4]
    assert [one["verb"] for one in served.get(group_path(group, "/changes"))["changes"]] == ["undo", "reset"]


def test_a_group_with_members_is_not_moved_and_they_are_named(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("g")
    member = cluster.member(group, topic, **{"client.id": "busy-reader"})
    try:
        for body in ({"to": "earliest"}, {"to": "earliest", "execute": True}):
            answer = served.ask("POST", group_path(group, "/reset"), {**body, "topics": [topic]})
            assert (answer.status, answer.body["error"]["code"]) == (409, "GROUP_IS_ACTIVE")
            assert "busy-reader" in answer.body["error"]["message"]
        assert served.ask("DELETE", group_path(group)).status == 409
    finally:
        member.close()


def test_offsets_are_shifted_and_set_by_moments_without_a_zone(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("g")
    cluster.write(topic, [b"x"] * 10, at_ms=NOW_MS)
    cluster.commit(group, topic, {0: 6})
    for body, leads_to in (({"to": "stored-2"}, 4), ({"shift": 3}, 9), ({"to": "@2020-01-01T00:00"}, 0)):
        told = served.ask("POST", group_path(group, "/reset"), body).body
        assert [one["new"] for one in told["moved"]] == [leads_to], body


def test_a_group_that_follows_a_spark_job_is_moved_only_by_force(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("g")
    cluster.write(topic, [b"x"] * 10)
    with Admin(served.bootstrap) as admin:  # as the Spark source commits, with its lineage beside the offset
        admin.alter_group_offsets(group, {TopicPartition(topic, 0): Committed(6, -1, "lowwater:0123abcd")}).checked()
    path = group_path(group, "/reset")
    preview = served.ask("POST", path, {"to": "earliest"})
    assert "checkpoint" in preview.body["warning"]
    refused = served.ask("POST", path, {"to": "earliest", "execute": True})
    assert (refused.status, refused.body["error"]["code"]) == (409, "SPARK_RULES")
    assert "lowwater pipeline reset" in refused.body["error"]["message"]
    assert served.ask("DELETE", group_path(group)).status == 409
    assert cluster.committed(group, topic) == [6]
    assert served.ask("POST", path, {"to": "earliest", "execute": True, "force": True}).status == 200
    assert cluster.committed(group, topic) == [0]


def test_a_deleted_group_can_be_brought_back(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("g")
    cluster.write(topic, [b"x"] * 3)
    cluster.commit(group, topic, {0: 2})
    assert served.ask("DELETE", group_path(group)).status == 200
    assert cluster.committed(group, topic) == [-1001]
    assert served.ask("POST", group_path(group, "/undo"), {}).status == 200
    assert cluster.committed(group, topic) == [2]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"to": "earliest", "shift": 3}, 422),
        ({"to": "someday"}, 422),
        ({"to": "latest,elsewhere=earliest", "execute": True}, 422),
        ({"to": 5}, 422),
        ({"shift": "5"}, 422),
        ({"to": "earliest", "partitions": [0]}, 422),
        ({"to": "earliest", "execute": 1}, 422),
        ({"to": "stored", "topics": ["{topic}"]}, 422),
        ({"to": "earliest", "topics": [str(one) for one in range(1000)], "partitions": list(range(1000))}, 422),
        (b'{"to": "\\ud800"}', 400),
        ([], 422),
        (b"{", 400),
    ],
)
def test_a_wrong_reset_changes_nothing_and_says_what_is_wrong(
    served: Served, cluster: Cluster, body: object, status: int
) -> None:
    topic, group = cluster.create(fresh("t"), 2), fresh("g")
    cluster.commit(group, topic, {0: 0})
    if isinstance(body, dict) and "{topic}" in body.get("topics", ()):
        body = {**body, "topics": [topic]}
    answer = served.ask("POST", group_path(group, "/reset"), body)
    assert answer.status == status, answer
    assert answer.body["error"]["message"]


# ---- topics


def test_topics_are_listed_with_sizes_and_described_with_their_partitions(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("sized"), 2)
    cluster.write(topic, [b"x" * 100] * 7, partition=1)
    [listed] = served.get(f"/topics?prefix={topic}")["topics"]
    assert (listed["partitions"], listed["records"]) == (2, 7)
    assert listed["bytes"] > 700
    told = served.get(f"/topics/{topic}")
    assert [(one["start"], one["end"]) for one in told["partitions"]] == [(0, 0), (0, 7)]
    assert served.ask("GET", f"/topics/{fresh('none')}").status == 404


def test_records_are_browsed_from_a_start_position_oldest_first(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("t"), 2)
    for place in range(6):
        cluster.write(topic, [b"%d" % place], partition=place % 2, at_ms=NOW_MS - 10_000 + place)
    told = served.get(f"/topics/{topic}/records?start=-2&limit=3")
    assert [one["value"] for one in told["records"]] == ["2", "3", "4"]
    assert told["starts"] == {"0": 1, "1": 1}
    one = served.get(f"/topics/{topic}/records?start=earliest&partition=1")
    assert [each["value"] for each in one["records"]] == ["1", "3", "5"]
    wrong = served.ask("GET", f"/topics/{topic}/records?start=someday")
    assert wrong.status == 422
    assert "is not a start position" in wrong.body["error"]["message"]
    wrong = served.ask("GET", f"/topics/{topic}/records?start=elsewhere%3D5")
    assert wrong.status == 422
    assert "names 'elsewhere', which is not asked for" in wrong.body["error"]["message"]


def test_large_records_of_all_partitions_are_browsed_and_cut_short(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("large"), 12)
    for partition in range(12):
        cluster.write(topic, [bytes([65 + partition]) * 900_000], partition=partition)
    told = served.get(f"/topics/{topic}/records?start=earliest")
    assert sorted(one["partition"] for one in told["records"]) == list(range(12))
    assert all(one["cut"] and len(one["value"]) == 32 * 1024 for one in told["records"])
    whole = served.get(f"/topics/{topic}/partitions/3/records")
    assert whole["records"][0]["value"] == "D" * 900_000


def test_what_a_few_bytes_unpack_to_comes_in_pages(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("packed"))
    cluster.write(
        topic, [b"0" * 800_000] * 30, settings={"compression.type": "zstd", "linger.ms": 200, "batch.size": 1_000_000_0}
    )
    found, offset = [], 0
    while offset < 30:
        told = served.get(f"/topics/{topic}/partitions/0/records?offset={offset}&max_bytes=8000000")
        assert told["next_offset"] > offset
        assert sum(len(one["value"]) for one in told["records"]) < 20_000_000
        found += [one["offset"] for one in told["records"]]
        offset = told["next_offset"]
    assert found == list(range(30))


def test_without_an_offset_records_come_from_the_log_start(served: Served, cluster: Cluster) -> None:
    topic = cluster.create(fresh("trimmed"))
    cluster.write(topic, [b"x"] * 5)
    cluster.delete_before(topic, 3)
    assert [one["offset"] for one in served.get(f"/topics/{topic}/partitions/0/records")["records"]] == [3, 4]


def test_metrics_hold_the_lag_of_groups(served: Served, cluster: Cluster) -> None:
    topic, group = cluster.create(fresh("t")), fresh("measured")
    cluster.write(topic, [b"x"] * 5)
    cluster.commit(group, topic, {0: 2})
    line = until(
        lambda: [
            each
            for each in served.get("/metrics").splitlines()
            if each.startswith("kafka_consumergroup_group_lag{") and f'group="{group}"' in each
        ],
        "the group is seen",
    )
    assert line[0].endswith(" 3.0")
