"""Plays the acts of a scenario with real readers on a real broker.

Each act is one thing that happens, or that has to be so:

    create {topic: partitions}, config {…}     write {"p0": [100, …]}      begin {"p0": [100]} / end "commit" | "abort"
    open {options of lowwater.read}, raises X  read [rows, in order] or rows N     quiet: a poll gives nothing
    finish [rows]: all that is left, in order  expect {what a reader says}  seek {"p0": start}   drop "p0"
    commit true | {"p0": 3}                    committed {"p0": 3}          commit_before {"p0": 100}
    delete_records {"p0": 5}                   add_partitions N             delete_topic "cars"
    fail [api, error, times], well             close
    share [readers], rows [in any order]: polled in turn, all rows come once, and each reader has a part

`as` names the reader when there is more than one; `raises` and `says` are about the error of an act.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.fresh import fresh
from tests.reader.logs import TOPIC, named, place
from tests.reader.writing import PATIENCE_S, Writer

import lowwater
from lowwater import Reader, TopicPartition
from lowwater.errors import ErrorCode, LowwaterError

QUIET_MS = 300


class Play:
    """One scenario; its topics and groups have names of their own on the broker."""

    def __init__(self, broker: UnderTest, name: str) -> None:
        self._broker = broker
        self._suffix = fresh(f"-{name}")
        self._writer = Writer(broker.bootstrap)
        self._readers: dict[str, Reader] = {}

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._writer.close()
        if self._broker.name == "lowwater":
            self._well(True, {})

    # ---- names

    def topic(self, name: str) -> str:
        return name + self._suffix

    def one(self, text: str) -> TopicPartition:
        found = place(text)
        return TopicPartition(self.topic(found.topic), found.partition)

    def _said(self, one: TopicPartition) -> TopicPartition:
        return TopicPartition(one.topic.removesuffix(self._suffix), one.partition)

    def _key(self, one: TopicPartition) -> str:
        said = self._said(one)
        return f"p{said.partition}" if said.topic == TOPIC else f"{said.topic}/p{said.partition}"

    def rows(self, batch: Any) -> list[str]:
        times = batch.column("timestamp").cast("int64").to_pylist()
        topics, partitions = batch.column("topic").to_pylist(), batch.column("partition").to_pylist()
        places = [TopicPartition(*each) for each in zip(topics, partitions, strict=True)]
        return [named(self._said(one), timestamp) for one, timestamp in zip(places, times, strict=True)]

    # ---- acts

    def act(self, act: dict[str, Any]) -> None:
        if "raises" not in act:
            self._act(act)
            return
        with pytest.raises((LowwaterError, LookupError)) as caught:
            self._act(act)
        assert act["raises"] in {each.__name__ for each in caught.type.__mro__}, repr(caught.value)
        for part in act.get("says", ()):
            assert part in str(caught.value)

    def _act(self, act: dict[str, Any]) -> None:
        verb = next(iter(act))
        getattr(self, f"_{verb}")(act[verb], act)

    def _reader(self, act: dict[str, Any]) -> Reader:
        return self._readers[act.get("as", "")]

    def _create(self, topics: dict[str, int], act: dict[str, Any]) -> None:
        for topic, partitions in topics.items():
            self._writer.create(self.topic(topic), partitions, act.get("config"))

    def _write(self, logs: dict[str, list[Any]], _: dict[str, Any]) -> None:
        for key, things in logs.items():
            self._writer.write(self.one(key), things)

    def _begin(self, logs: dict[str, list[int]], _: dict[str, Any]) -> None:
        for key, times in logs.items():
            self._writer.begin(self.one(key), times)

    def _end(self, how: str, _: dict[str, Any]) -> None:
        self._writer.end(commit=how == "commit")

    def _open(self, options: dict[str, Any], act: dict[str, Any]) -> None:
        given = dict(options)
        topics = given.pop("topics", TOPIC)
        if "group" in given:
            given["group"] += self._suffix
        if "pattern" in given:
            given["pattern"] += self._suffix
            topics = None
        else:
            topics = self.topic(topics) if isinstance(topics, str) else [self.topic(one) for one in topics]
        if isinstance(given.get("start"), dict):
            given["start"] = {self.one(key): start for key, start in given["start"].items()}
        reader = lowwater.read(topics, bootstrap=self._broker.bootstrap, **given)
        self._readers[act.get("as", "")] = reader

    def _read(self, expected: list[str] | int, act: dict[str, Any]) -> None:
        """Rows as they come, until there are as many."""
        count = expected if isinstance(expected, int) else len(expected)
        rows: list[str] = []
        until = time.monotonic() + PATIENCE_S
        while len(rows) < count and time.monotonic() < until:
            rows += self.rows(self._reader(act).poll(1000))
        assert len(rows) == count if isinstance(expected, int) else rows == expected, rows

    def _share(self, names: list[str], act: dict[str, Any]) -> None:
        """Poll these in turn until each has a part of the partitions and all rows came, each of them once."""
        rows: list[str] = []
        readers = [self._readers[name] for name in names]
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            for reader in readers:
                rows += self.rows(reader.poll(100))
            if len(rows) >= len(act["rows"]) and all(reader.assignment for reader in readers):
                break
        assert sorted(rows) == sorted(act["rows"])
        assert all(reader.assignment for reader in readers)
        assert not frozenset.intersection(*(reader.assignment for reader in readers))

    def _quiet(self, _: bool, act: dict[str, Any]) -> None:
        assert self.rows(self._reader(act).poll(QUIET_MS)) == []

    def _poll(self, _: bool, act: dict[str, Any]) -> None:
        """Until it raises."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            self._reader(act).poll(1000)

    def _finish(self, expected: list[str], act: dict[str, Any]) -> None:
        assert self.rows(self._reader(act).to_table()) == expected

    def all_rows(self) -> tuple[list[str], int]:
        """What is left, and how many of them were late."""
        reader = self._readers[""]
        return self.rows(reader.to_table()), reader.late_rows

    def _expect(self, expected: dict[str, Any], act: dict[str, Any]) -> None:
        reader = self._reader(act)
        seen: dict[str, Any] = {
            "live": reader.is_live,
            "finished": reader.is_finished,
            "late": reader.late_rows,
            "future": reader.stats.future_rows,
            "commit_failures": reader.stats.commit_failures,
            "assigned": sorted(map(self._key, reader.assignment)),
            "lost": [
                [self._key(TopicPartition(one.topic, one.partition)), one.first, one.behind] for one in reader.lost
            ],
        }
        for name in ("starts", "ends", "positions", "lag"):
            seen[name] = {self._key(one): offset for one, offset in sorted(getattr(reader, name).items())}
        for what, wanted in expected.items():
            assert seen[what] == wanted, what

    def _seek(self, positions: dict[str, Any], act: dict[str, Any]) -> None:
        for key, position in positions.items():
            self._reader(act).seek(*self.one(key), position)

    def _drop(self, key: str, act: dict[str, Any]) -> None:
        self._reader(act).drop(*self.one(key))

    def _commit(self, offsets: dict[str, int] | bool, act: dict[str, Any]) -> None:
        given = {self.one(key): offset for key, offset in offsets.items()} if isinstance(offsets, dict) else None
        self._reader(act).commit(given)

    def _commit_before(self, offsets: dict[str, int], act: dict[str, Any]) -> None:
        group = act.get("group", "g") + self._suffix
        given = {self.one(key): offset for key, offset in offsets.items()}
        self._writer.admin.alter_group_offsets(group, given).checked()

    def _committed(self, expected: dict[str, int], act: dict[str, Any]) -> None:
        group = act.get("group", "g") + self._suffix
        found = self._writer.admin.group_offsets([group]).checked()[group]
        assert {self._key(one): each.offset for one, each in sorted(found.items())} == expected

    def _delete_records(self, before: dict[str, int], _: dict[str, Any]) -> None:
        self._writer.admin.delete_records({self.one(key): offset for key, offset in before.items()}).checked()

    def _add_partitions(self, count: int, _: dict[str, Any]) -> None:
        self._writer.add_partitions(self.topic(TOPIC), count)

    def _delete_topic(self, topic: str, _: dict[str, Any]) -> None:
        self._writer.admin.delete_topics([self.topic(topic)]).checked()

    def _fail(self, fault: list[Any], _: dict[str, Any]) -> None:
        api, code, times = fault
        self._broker.process.faults.fail(api, ErrorCode[code], times)  # type: ignore[attr-defined]

    def _well(self, _: bool, __: dict[str, Any]) -> None:
        self._broker.process.faults.clear()  # type: ignore[attr-defined]

    def _close(self, _: bool, act: dict[str, Any]) -> None:
        self._readers.pop(act.get("as", "")).close()
