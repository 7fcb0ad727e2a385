"""Groups: all of them with how they fare, and one of them in full."""

from __future__ import annotations

import base64
import json
from bisect import bisect_right
from typing import Any

from lowwater.errors import ErrorCode
from lowwater.http.operations import Call, operation
from lowwater.http.paging import AFTER, LIMIT
from lowwater.http.problem import Problem, missing
from lowwater.http.schema import array, integer, nullable, record, string
from lowwater.http.watching import Look
from lowwater.lag.observation import GroupSeen
from lowwater.lag.owners import checkpoint_rules
from lowwater.lag.report import GroupLag
from lowwater.lag.rules import Status

_ORDER = list(Status)
_STATUS = nullable(string("OK, WARN, REWIND, STALL or STOP; null when it is not known."))
_ERRORS = array(record(what=string(), error=string()), "Parts of the cluster that did not answer.")
_LISTED = record(
    group=string(),
    state=nullable(string()),
    kind=nullable(string("classic or consumer")),
    members=nullable(integer()),
    topics=array(string()),
    lag=nullable(integer("Records; null when it is not known of any partition.")),
    time_lag_ms=nullable(integer("Age of the oldest record that is still to be read.")),
    status=_STATUS,
    trend=array(nullable(integer()), "The lag at the last looks."),
)
_PLACE = record(topic=string(), partition=integer())
_MEMBER = record(
    member=string(),
    instance=nullable(string()),
    client_id=string(),
    host=string(),
    partitions=nullable(array(_PLACE)),
)
LAG = {
    "type": "object",
    "description": "As `lowwater groups lag --json` prints it.",
    "required": ["group", "partitions"],
}


@operation(
    "GET",
    "/consumer-groups",
    "Groups with their lag and status",
    tag="groups",
    answer=record(
        groups=array(_LISTED),
        next=nullable(string("Give it as `after` for the next page; null on the last one.")),
        total=integer("Groups that fit, on all pages."),
        totals=record(groups=integer(), trouble=integer(), lag=nullable(integer()), time_lag_ms=nullable(integer())),
        as_of_ms=integer(),
        errors=_ERRORS,
    ),
    query={
        "prefix": string("Only names that begin so.", default=""),
        "show": string(
            "`trouble`: only those; `lagging`: only those behind.", enum=["", "trouble", "lagging"], default=""
        ),
        "sort": string("What comes first.", enum=["name", "lag", "time_lag", "status"], default="name"),
        "limit": LIMIT,
        "after": AFTER,
    },
)
async def list_groups(call: Call) -> Any:
    look = await call.desk.watch.first()
    fitting = [one for one in look.report.groups.values() if _fits(one, call.query["prefix"], call.query["show"])]
    fitting.sort(key=_KEYS[call.query["sort"]])
    key = _KEYS[call.query["sort"]]
    first = 0 if call.query["after"] is None else bisect_right(fitting, _key(call.query["after"]), key=key)
    shown = fitting[first : first + call.query["limit"]]
    return {
        "groups": [_listed(call, one) for one in shown],
        "next": _cursor(key(shown[-1])) if shown and first + len(shown) < len(fitting) else None,
        "total": len(fitting),
        "totals": _totals(look),
        "as_of_ms": look.report.at_ms,
        "errors": errors(look),
    }


_KEYS: dict[str, Any] = {
    "name": lambda one: (0, one.group),
    "lag": lambda one: (-(one.lag or 0), one.group),
    "time_lag": lambda one: (-(one.time_lag_ms or 0), one.group),
    "status": lambda one: (-_ORDER.index(one.status), one.group),
}


def _fits(one: GroupLag, prefix: str, show: str) -> bool:
    if not one.group.startswith(prefix):
        return False
    return {"": True, "trouble": one.is_wrong, "lagging": bool(one.lag)}[show]


def _cursor(key: tuple[int, str]) -> str:
    """The place of the last group shown: the next page begins behind it, whether it is still there or not."""
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def _key(cursor: str) -> tuple[int, str]:
    try:
        number, name = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return int(number), str(name)
    except (ValueError, TypeError):
        raise Problem(400, "BAD_QUERY", "`after` is not the `next` of a page") from None


def _listed(call: Call, one: GroupLag) -> dict[str, Any]:
    return {
        "group": one.group,
        "state": one.state,
        "kind": one.kind,
        "members": one.members,
        "topics": one.topics,
        "lag": one.lag,
        "time_lag_ms": one.time_lag_ms,
        "status": one.status.value,
        "trend": call.desk.watch.courses.trend(one.group),
    }


def _totals(look: Look) -> dict[str, int | None]:
    groups = look.report.groups.values()
    known = [one.lag for one in groups if one.lag is not None]
    return {
        "groups": len(groups),
        "trouble": sum(one.is_wrong for one in groups),
        "lag": sum(known) if known else None,
        "time_lag_ms": max((one.time_lag_ms for one in groups if one.time_lag_ms is not None), default=None),
    }


def errors(look: Look) -> list[dict[str, str]]:
    return [{"what": fault.where, "error": fault.what} for fault in look.faults]


@operation(
    "GET",
    "/consumer-groups/{group}",
    "One group: state, members, lag, and what happened to it",
    tag="groups",
    answer=record(
        group=string(),
        state=nullable(string()),
        kind=nullable(string()),
        members=array(_MEMBER),
        lag=LAG,
        owner=nullable(string("Said of groups that follow a Spark job.")),
        rebalances=array(record(at_ms=integer(), state=string(), members=integer(), what=string())),
        errors=_ERRORS,
    ),
    statuses=(404,),
)
async def describe_group(call: Call) -> Any:
    look, group, seen = await _look_at(call)
    return {
        "group": group.group,
        "state": group.state,
        "kind": group.kind,
        "members": _members(seen),
        "lag": group.document(),
        "owner": checkpoint_rules(group.group, group.lineages) if group.lineages else None,
        "rebalances": [one._asdict() for one in call.desk.watch.rebalances(group.group)],
        "errors": errors(look),
    }


@operation(
    "GET",
    "/consumer-groups/{group}/assignments",
    "Who reads what",
    tag="groups",
    answer=record(group=string(), state=nullable(string()), members=array(_MEMBER)),
    statuses=(404,),
)
async def assignments(call: Call) -> Any:
    _, group, seen = await _look_at(call)
    return {"group": group.group, "state": group.state, "members": _members(seen)}


@operation(
    "GET", "/consumer-groups/{group}/lag", "How far a group is behind", tag="groups", answer=LAG, statuses=(404,)
)
async def lag(call: Call) -> Any:
    _, group, _ = await _look_at(call)
    return group.document()


@operation(
    "GET",
    "/consumer-groups/{group}/course",
    "How its lag went on lately, by partition",
    tag="groups",
    answer=record(
        times=array(integer()),
        partitions=array(
            record(
                topic=string(),
                partition=integer(),
                lag=array(nullable(integer())),
                time_lag_ms=array(nullable(integer())),
            )
        ),
    ),
)
async def course(call: Call) -> Any:
    return call.desk.watch.courses.of(call.path["group"])


async def _look_at(call: Call) -> tuple[Look, GroupLag, GroupSeen]:
    name = call.path["group"]
    look = await call.desk.look_at(name)
    group, seen = look.report.groups.get(name), look.seen.get(name)
    assert group is not None, "it was asked for"
    assert seen is not None
    if not seen.committed and not seen.members and seen.state in (None, "Dead"):
        if seen.state is None and ErrorCode.GROUP_ID_NOT_FOUND.name not in (seen.fault or ""):
            raise Problem(503, "CLUSTER_UNREACHABLE", f"nothing is known of group {name!r}: {seen.fault}")
        raise missing(f"there is no group {name!r}")
    return look, group, seen


def _members(seen: GroupSeen) -> list[dict[str, Any]]:
    return [
        {
            "member": one.member_id,
            "instance": one.instance_id,
            "client_id": one.client_id,
            "host": one.host,
            "partitions": None
            if one.partitions is None
            else [{"topic": each.topic, "partition": each.partition} for each in sorted(one.partitions)],
        }
        for one in seen.members
    ]
