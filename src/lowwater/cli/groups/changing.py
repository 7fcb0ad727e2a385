"""What all commands that change offsets share: they show what would be done, and do it when they are told to."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lowwater.cli.connecting import Connected
from lowwater.cli.output import Column, Output, Row
from lowwater.cli.printing import UNKNOWN, counted, number, printable, tell

if TYPE_CHECKING:
    from lowwater.client.group_offsets import Committed
    from lowwater.lag.resetting import Carried, Move, Plan, Selection

T = TypeVar("T")


def _arrow(after: Any) -> str:
    return f"→ {UNKNOWN}" if after is None else f"→ {after:,}"


COLUMNS = (
    Column("group", "GROUP"),
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", str, is_number=True),
    Column("before", "OLD", number, is_number=True),
    Column("after", "NEW", _arrow, is_number=True),
    Column("note", "NOTE"),
)
OUTCOME = (Column("done", "DONE"), Column("error", "ERROR"))


@dataclass(frozen=True, slots=True)
class Doing:
    """Whether it is to be done, also to a group that follows a Spark job, and with the old offsets kept."""

    executes: bool
    forces: bool
    keeps: bool


def doing_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds --execute, --force and --no-undo to a command, which gets them as `doing`."""

    @functools.wraps(command)
    def with_doing(*args: Any, executes: bool, forces: bool, no_undo: bool, **others: Any) -> T:
        return command(*args, doing=Doing(executes, forces, not no_undo), **others)

    for option in (
        click.option("--no-undo", is_flag=True, help="Do not keep the old offsets, where that is not allowed."),
        click.option("--force", "forces", is_flag=True, help="Also where a Spark job's checkpoint rules."),
        click.option("--execute", "executes", is_flag=True, help="Do it. Without, it is only shown."),
    ):
        with_doing = option(with_doing)
    return with_doing


def topic_option(command: Callable[..., T]) -> Callable[..., T]:
    """Adds --topic and --all-topics to a command, which gets them as `selection`."""

    @functools.wraps(command)
    def with_selection(*args: Any, topics: tuple[str, ...], all_topics: bool, **others: Any) -> T:
        if topics and all_topics:
            raise click.UsageError("--topic and --all-topics are two answers to one question: give one of them")
        return command(*args, selection=_selection(topics, all_topics), **others)

    for option in (
        click.option("--all-topics", is_flag=True, help="All partitions that the group has offsets for."),
        click.option("--topic", "topics", metavar="TOPIC[:0,1,…]", multiple=True,
                     help="A topic, or some partitions of it. Repeatable."),
    ):  # fmt: skip
        with_selection = option(with_selection)
    return with_selection


def _selection(topics: Iterable[str], all_topics: bool) -> Selection:
    from lowwater.lag.resetting import Selection

    return Selection(tuple(map(_topic, topics)), all_topics)


def _topic(text: str) -> tuple[str, tuple[int, ...] | None]:
    from lowwater.types import topic_name_problem

    name, colon, numbers = text.partition(":")
    if problem := topic_name_problem(name):
        raise click.BadParameter(problem, param_hint="--topic")
    if not colon:
        return name, None
    parts = [part.strip() for part in numbers.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise click.BadParameter(f"{numbers!r} are not partitions, such as 0,1,2", param_hint="--topic")
    return name, tuple(int(part) for part in parts)


def who() -> str:
    """Who changes something, for the journal: the user and the machine."""
    import getpass
    import socket

    user = "?"
    with contextlib.suppress(OSError, KeyError, ImportError):  # a user without a name
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"


def show_and_do(connected: Connected, plans: Sequence[Plan], doing: Doing, output: Output) -> None:
    """Exits with 1 when something cannot be done, or was not."""
    results = [_Result(connected, plan, doing) for plan in plans]
    rows = [row for result in results for row in result.rows()]
    is_plain = output.is_for_people
    columns = [each for each in COLUMNS if not is_plain or each.name != "note" or any(row["note"] for row in rows)]
    output.rows(columns if is_plain else [*columns, *OUTCOME], rows)
    for result in results:
        result.tell(is_plain)
    if not rows and is_plain and not any(plan.is_whole_group for plan in plans):
        tell("there are no offsets to change")
    if any(result.is_wrong for result in results):
        sys.exit(1)


class _Result:
    """A plan, done or not."""

    def __init__(self, connected: Connected, plan: Plan, doing: Doing) -> None:
        self._plan = plan
        self._doing = doing
        self._carried: Carried | None = None
        self._error = self._problem()
        if self._error is None and doing.executes:
            self._carry_out(connected)

    def _problem(self) -> Exception | None:
        from lowwater.client.errors import ClientError
        from lowwater.lag.owners import checkpoint_rules
        from lowwater.lag.resetting import ActiveGroupError

        plan = self._plan
        if plan.members:
            return ActiveGroupError(plan.group, plan.members)
        if plan.lineages and not self._doing.forces:
            return ClientError(
                checkpoint_rules(plan.group, plan.lineages), advice="--force sets the group all the same"
            )
        return None

    def _carry_out(self, connected: Connected) -> None:
        from lowwater.client.errors import ClientError
        from lowwater.lag.journal import JournalError
        from lowwater.lag.resetting import carry_out

        try:
            self._carried = connected.run(
                carry_out(connected.cluster, self._plan, who=who(), is_kept=self._doing.keeps)
            )
        except JournalError as error:
            error.advice = "--no-undo goes on without"
            self._error = error
        except ClientError as error:
            self._error = error

    @property
    def is_wrong(self) -> bool:
        failed = self._carried is not None and self._carried.failed
        return self._error is not None or bool(self._plan.refused) or bool(failed)

    def rows(self) -> list[Row]:
        rows = [self._row(move) for move in self._plan.moves]
        for one, why in sorted(self._plan.refused.items()):
            rows.append({
                "group": self._plan.group, "topic": one.topic, "partition": one.partition, "before": None,
                "after": None, "note": why, "done": False, "error": why,
            })  # fmt: skip
        return rows

    def _row(self, move: Move) -> Row:
        failed = {} if self._carried is None else self._carried.failed
        error = failed.get(move.partition)
        is_done = self._carried is not None and error is None
        return {
            "group": self._plan.group,
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "before": _offset(move.before),
            "after": _offset(move.after),
            "note": move.note if error is None else str(error),
            "done": is_done,
            "error": None if error is None else str(error),
        }

    def tell(self, is_for_people: bool) -> None:
        for one, why in sorted(self._plan.refused.items()):
            tell(f"{one}: {why}")
        if self._error is not None:
            tell(self._error)
        elif self._carried is None:
            if is_for_people and (self._plan.changes or self._plan.is_whole_group):
                tell("nothing was changed: say --execute to do this")
        else:
            self._tell_done(self._carried, is_for_people)

    def _tell_done(self, carried: Carried, is_for_people: bool) -> None:
        for one, error in sorted(carried.failed.items()):
            tell(f"{one}: {error}")
        if not is_for_people:
            return
        group = printable(self._plan.group)
        if carried.change is None:
            if not carried.failed:
                click.echo(f"{group}: done" if self._plan.is_whole_group else f"{group}: there was nothing to change")
        elif carried.done or not carried.failed:
            done = f"done for {counted(len(carried.done), 'partition')}" if carried.failed else "done"
            click.echo(
                f"{group}: {done}; `lowwater groups undo {group} --execute` takes it back (change {carried.change.id})"
            )


def _offset(committed: Committed | None) -> int | None:
    return None if committed is None else committed.offset


def plans_by_group(connected: Connected, offsets: Mapping[str, Mapping[Any, int]], verb: str) -> list[Plan]:
    """To set offsets one by one."""
    from lowwater.lag.resetting import Target, plan_reset

    return [
        connected.run(plan_reset(connected.cluster, group, Target(offsets=wanted), verb=verb))
        for group, wanted in offsets.items()
    ]
