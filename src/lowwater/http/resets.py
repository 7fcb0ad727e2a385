"""Moving groups: previewed, done with the old offsets kept, and taken back."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from lowwater.http.operations import Call, operation
from lowwater.http.problem import Problem, of_client
from lowwater.http.schema import array, boolean, integer, nullable, record, string
from lowwater.lag import journal
from lowwater.lag.owners import checkpoint_rules
from lowwater.lag.resetting import (
    ALL,
    ActiveGroupError,
    Carried,
    NothingToUndoError,
    Plan,
    Selection,
    Target,
    carry_out,
    check_target,
    plan_delete,
    plan_reset,
    plan_undo,
    read_target,
)

_TOPICS_MAX = 1_000
_PARTITIONS_MAX = 100_000
_FORCE = boolean("Also when the group follows a Spark job, whose checkpoint rules.", default=False)
_MOVED = record(
    topic=string(),
    partition=integer(),
    old=nullable(integer("null: nothing was committed.")),
    new=nullable(integer("null: nothing will be.")),
    note=string(),
)
_PLAN = record(
    group=string(),
    executed=boolean(),
    change=nullable(string("What `undo` goes by; null when nothing was changed.")),
    moved=array(_MOVED),
    refused=array(record(topic=string(), partition=integer(), error=string())),
    warning=nullable(string()),
)
_CHANGE = record(
    id=string(),
    at_ms=integer(),
    who=string(),
    verb=string(),
    undoes=nullable(string()),
    outcome=nullable(string("`done`, or what went wrong; null when nobody lived to tell.")),
    partitions=array({"type": "object"}),
    group=string(),
)


@operation(
    "POST",
    "/consumer-groups/{group}/reset",
    "Show where offsets would go; with `execute` move them",
    tag="changes",
    answer=_PLAN,
    body=record(
        optional={
            "to": string(
                "A start position: earliest, latest, -1h, @2026-11-16T08:00 (UTC), 42, stored-10 …",
                minLength=1,
                maxLength=1_000,
            ),
            "shift": integer("Instead of `to`: so many offsets on, or back.", minimum=-(2**62), maximum=2**62),
            "topics": array(string(minLength=1), "Only these; else all that have offsets.", maxItems=_TOPICS_MAX),
            "partitions": array(
                integer(minimum=0, maximum=2**31 - 1), "Only these of those topics.", maxItems=_PARTITIONS_MAX
            ),
            "execute": boolean("False, the default, changes nothing."),
            "force": _FORCE,
        }
    ),
    statuses=(404, 409),
)
async def reset(call: Call) -> Any:
    body = call.body
    target = _target(body)
    plan = await call.desk.run(plan_reset(call.desk.cluster, call.path["group"], target, _selection(body)))
    check_target(target, [plan])
    return await _carried(call, plan, is_wanted=body.get("execute", False), force=body.get("force", False))


def _target(body: dict[str, Any]) -> Target:
    if ("to" in body) == ("shift" in body):
        raise Problem(422, "BAD_BODY", "the body needs either 'to' or 'shift'")
    if "shift" in body:
        return Target(shift=int(body["shift"]))
    return read_target(body["to"], UTC)


def _selection(body: dict[str, Any]) -> Selection:
    some = tuple(sorted(set(map(int, body["partitions"])))) if "partitions" in body else None
    if "topics" in body:
        names = dict.fromkeys(body["topics"])
        if len(names) * len(some or ()) > _PARTITIONS_MAX:
            raise Problem(422, "BAD_BODY", f"more than {_PARTITIONS_MAX} partitions at a time")
        return Selection(tuple((name, some) for name in names))
    if some is not None:
        raise Problem(422, "BAD_BODY", "'partitions' needs 'topics'")
    return ALL


@operation(
    "POST",
    "/consumer-groups/{group}/undo",
    "Take the last change back, or a named one",
    tag="changes",
    answer=_PLAN,
    body=record(optional={"change": string("The id of a change.", minLength=1, maxLength=64), "force": _FORCE}),
    statuses=(404, 409),
)
async def undo(call: Call) -> Any:
    try:
        plan = await call.desk.run(plan_undo(call.desk.cluster, call.path["group"], call.body.get("change")))
    except NothingToUndoError as error:
        raise Problem(404, "NOTHING_TO_UNDO", str(error)) from None
    return await _carried(call, plan, is_wanted=True, force=call.body.get("force", False))


@operation(
    "DELETE",
    "/consumer-groups/{group}",
    "Delete a group without members, with all it has committed; undo brings that back",
    tag="changes",
    answer=_PLAN,
    query={"force": _FORCE},
    statuses=(404, 409),
)
async def delete(call: Call) -> Any:
    plan = await call.desk.run(plan_delete(call.desk.cluster, call.path["group"]))
    return await _carried(call, plan, is_wanted=True, force=call.query["force"])


@operation(
    "GET",
    "/consumer-groups/{group}/changes",
    "What was changed by hand, the newest first",
    tag="changes",
    answer=record(changes=array(_CHANGE)),
)
async def changes(call: Call) -> Any:
    found = await call.desk.run(journal.changes(call.desk.cluster, [call.path["group"]]))
    return {"changes": [one.document() for one in found]}


async def _carried(call: Call, plan: Plan, *, is_wanted: bool, force: bool) -> dict[str, Any]:
    carried = Carried(None)
    if is_wanted and plan.lineages and not force:
        raise Problem(
            409, "SPARK_RULES", f"{checkpoint_rules(plan.group, plan.lineages)}; `force` does it all the same"
        )
    if is_wanted:
        try:
            carried = await call.desk.run(carry_out(call.desk.cluster, plan, who=f"http {call.who}"))
        except ActiveGroupError as error:
            raise Problem(409, "GROUP_IS_ACTIVE", str(error)) from None
        if carried.failed and not carried.done:
            raise of_client(next(iter(carried.failed.values())))
    elif plan.members:
        raise Problem(409, "GROUP_IS_ACTIVE", str(ActiveGroupError(plan.group, plan.members)))
    failed = {one: str(error) for one, error in carried.failed.items()}
    return {
        "group": plan.group,
        "executed": is_wanted,
        "change": None if carried.change is None else carried.change.id,
        "moved": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "old": None if move.before is None else move.before.offset,
                "new": None if move.after is None else move.after.offset,
                "note": move.note,
            }
            for move in plan.changes
            if move.partition not in failed
        ],
        "refused": [
            {"topic": one.topic, "partition": one.partition, "error": why}
            for one, why in sorted({**plan.refused, **failed}.items())
        ],
        "warning": checkpoint_rules(plan.group, plan.lineages) if plan.lineages else None,
    }
