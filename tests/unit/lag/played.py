"""Scripted histories of a group: observations as a JSON file has them, taken one after the other and judged."""

from __future__ import annotations

import hashlib
from typing import Any

from lowwater.client.admin.group_members import GroupMember
from lowwater.client.group_offsets import Committed
from lowwater.client.stamps import Place, Stamp
from lowwater.lag.history import History
from lowwater.lag.judging import judge
from lowwater.lag.observation import Fault, GroupSeen, LoggedCommit, Observation, Standing
from lowwater.lag.report import GroupLag
from lowwater.types import TopicPartition
from lowwater.wire.schema import ZERO_UUID

GROUP = "billing"


def played(scenario: dict[str, Any]) -> GroupLag:
    history = History()
    for look in scenario["looks"]:
        observation = observed(scenario["group"], look)
        history.take(observation)
    return judge(observation, history, allowed=scenario.get("allowed", 0)).groups[GROUP]


def observed(group: dict[str, Any], look: dict[str, Any]) -> Observation:
    members = tuple(
        GroupMember(one["client"], one["client"], one["host"], partitions=tuple(map(partition, one["partitions"])))
        for one in group["members"]
    )
    committed = {partition(name): _committed(given) for name, given in look["committed"].items()}
    seen = GroupSeen(GROUP, group["state"], "classic", members, committed, group.get("fault"))
    return Observation(
        look["at_ms"],
        {GROUP: seen},
        {partition(name): _standing(name, given, look) for name, given in look["partitions"].items()},
        {_place(name): _stamp(name, given) for name, given in look.get("next", {}).items()},
        tuple(_commit(*given) for given in look.get("commits", [])),
        tuple(Fault(*given) for given in look.get("faults", [])),
    )


def partition(name: str) -> TopicPartition:
    topic, _, number = name.rpartition("/")
    return TopicPartition(topic, int(number))


def _committed(given: int | dict[str, Any]) -> Committed:
    return Committed(given) if isinstance(given, int) else Committed(**given)


def _standing(name: str, given: Any, look: dict[str, Any]) -> Standing:
    if given == "gone":
        return Standing(is_gone=True)
    if isinstance(given, dict):
        return Standing(fault=given["fault"])
    topic_id = _id(look.get("topic_ids", {}).get(partition(name).topic))
    return Standing(*given, topic_id, look.get("epochs", {}).get(name, -1))


def _place(name: str) -> Place:
    where, _, offset = name.partition("@")
    return Place(partition(where), int(offset))


def _stamp(name: str, given: int | dict[str, Any] | None) -> Stamp | None:
    if given is None:
        return None
    offset = _place(name).offset
    return Stamp(offset, given) if isinstance(given, int) else Stamp(offset, given["at_ms"], given["is_open"])


def _commit(name: str, at_ms: int, offset: int, topic: str | None = None) -> LoggedCommit:
    return LoggedCommit(GROUP, partition(name), at_ms, offset, _id(topic))


def _id(name: str | None) -> bytes:
    return ZERO_UUID if name is None else hashlib.md5(name.encode()).digest()
