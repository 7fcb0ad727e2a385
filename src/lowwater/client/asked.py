"""How one asks for a reader: every option in one place, checked before anything is connected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal, TypedDict, TypeVar, cast

from lowwater.client.arguments import is_whole, refused, settings_of, whole_number
from lowwater.client.config import ClientConfig
from lowwater.client.read_partitions import BATCH_SIZE, HELD_BYTES_MAX, Options
from lowwater.client.wanted import Start, Stop, Topic, TopicId, Topics, Wanted, moment_ms, wanted
from lowwater.errors import ConfigError
from lowwater.types import TopicPartition

T = TypeVar("T")

BOOTSTRAP = "localhost:9092"
ORDERS = ("timestamp", "partition", None)
COMMIT_FAILURES = ("retry", "raise", "continue")
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers")
RESETS = ("error", "earliest", "latest", None)


class SharedOptions(TypedDict, total=False):
    """Options of every reader, as `read` explains them."""

    stop: Stop | Mapping[Topic, Stop] | None
    group: str | None
    join: bool
    order: Literal["timestamp", "partition"] | None
    columns: Sequence[str] | None
    held_bytes_max: int
    on_commit_failure: Literal["retry", "raise", "continue"]
    on_lost: Literal["error", "earliest", "latest"] | None
    zone: str | tzinfo | None
    topic_ids: Mapping[str, TopicId] | None


class ReadOptions(SharedOptions, total=False):
    """Those of `read`, `Reader` and `AsyncReader`."""

    pattern: str | None
    bootstrap: str | Sequence[str] | None
    start: Start | Mapping[Topic, Start] | None
    batch_size: int
    cutoff: datetime | int | str | None
    config: Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Asked:
    config: ClientConfig
    wanted: Wanted
    options: Options
    cutoff: datetime | int | str | None = None
    zone: str | tzinfo | None = None

    def cutoff_ms(self, now_ms: int) -> int | None:
        return None if self.cutoff is None else moment_ms(self.cutoff, now_ms, self.zone)


def ask(
    topics: Topics | None = None,
    *,
    pattern: str | None = None,
    bootstrap: str | Sequence[str] | None = None,
    start: Start | Mapping[Topic, Start] | None = None,
    stop: Stop | Mapping[Topic, Stop] | None = None,
    group: str | None = None,
    join: bool = True,
    order: Literal["timestamp", "partition"] | None = "timestamp",
    columns: Sequence[str] | None = None,
    batch_size: int = BATCH_SIZE,
    cutoff: datetime | int | str | None = None,
    held_bytes_max: int = HELD_BYTES_MAX,
    config: Mapping[str, object] | None = None,
    on_commit_failure: Literal["retry", "raise", "continue"] = "retry",
    on_lost: Literal["error", "earliest", "latest"] | None = None,
    zone: str | tzinfo | None = None,
    topic_ids: Mapping[str, TopicId] | None = None,
) -> Asked:
    """ConfigError says what cannot be understood, and what could stand there."""
    settings = _settings(bootstrap, group, config)
    _check_kinds(pattern, zone, topic_ids)
    _check_targets("start", start)
    _check_targets("stop", stop)
    asked = wanted(_topics(topics), pattern=pattern, start=start, stop=stop, zone=zone, topic_ids=topic_ids)
    options = Options(
        order=_one_of("order", order, ORDERS),
        columns=None if columns is None else _columns(columns),
        batch_size=_at_least_one("batch_size", batch_size),
        held_bytes_max=_at_least_one("held_bytes_max", held_bytes_max),
        group=settings.maybe_str("group.id"),
        joins=join,
        on_commit_failure=_one_of("on_commit_failure", on_commit_failure, COMMIT_FAILURES),
        on_lost=_one_of("on_lost", on_lost, RESETS),
    )
    if asked.starts.needs_group and options.group is None:
        raise ConfigError(f"the start {asked.starts} needs a group: say which, group=…")
    found = Asked(settings, asked, options, cutoff, zone)
    found.cutoff_ms(0)  # whether it can be read at all
    return found


def _settings(
    bootstrap: str | Sequence[str] | None, group: str | None, config: Mapping[str, object] | None
) -> ClientConfig:
    given = settings_of(config)
    if bootstrap is not None:
        if "bootstrap.servers" in given or "metadata.broker.list" in given:
            raise ConfigError("brokers are given twice: as bootstrap and in config")
        given["bootstrap.servers"] = _listed(bootstrap)
    elif "bootstrap.servers" not in given and "metadata.broker.list" not in given:
        given["bootstrap.servers"] = BOOTSTRAP
    if group is not None:
        if given.get("group.id", group) != group:
            raise ConfigError(f"two groups are given: {group} and, in config, {given['group.id']}")
        given["group.id"] = group
    return ClientConfig(given)


def _listed(given: object) -> object:
    return list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else given


def _topics(topics: Topics | None) -> Topics | None:
    """What is neither a topic nor several is refused."""
    if topics is None or isinstance(topics, str):
        return topics
    if _is_topic(topics):
        return [TopicPartition(*cast(TopicPartition, topics))]
    listed = topics if isinstance(topics, Mapping) else _listed(topics)
    if not isinstance(listed, list | Mapping):
        raise refused("topics", "a name, a partition, a list of those, or a mapping to their starts", topics)
    for each in listed:
        if not _is_topic(each):
            raise refused("each of topics", "a name or a partition, 'orders' or 'orders[0]'", each)
    return listed


def _is_topic(given: object) -> bool:
    """A name, or a name and the number of a partition."""
    if isinstance(given, tuple) and len(given) == 2:
        return isinstance(given[0], str) and is_whole(given[1])
    return isinstance(given, str)


def _check_targets(name: str, given: object) -> None:
    for target in given if isinstance(given, Mapping) else ():
        if not _is_topic(target):
            raise ConfigError(f"{name} is given by topic or partition, 'orders' or 'orders[0]', not by {target!r}")


def _check_kinds(pattern: object, zone: object, topic_ids: object) -> None:
    if not isinstance(pattern, str | None):
        raise refused("pattern", "a regular expression, as text", pattern)
    if not isinstance(zone, str | tzinfo | None):
        raise refused("zone", "the name of a time zone, or a tzinfo", zone)
    if not isinstance(topic_ids, Mapping | None):
        raise refused("topic_ids", "a mapping of topics to their ids", topic_ids)


def _columns(names: Sequence[str]) -> tuple[str, ...]:
    if not isinstance(names, Iterable):
        raise refused("columns", f"a list of {', '.join(COLUMNS)}", names)
    chosen = (names,) if isinstance(names, str) else tuple(names)
    for name in chosen:
        _one_of("a column", name, COLUMNS)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ConfigError(f"columns are named once each, and at least one: {', '.join(chosen) or 'none is given'}")
    return chosen


def check_names(options: Mapping[str, object]) -> None:
    """TypeError for an option that there is not, which names the nearest one."""
    known = ReadOptions.__annotations__.keys() | SharedOptions.__annotations__.keys()
    for name in options.keys() - known:
        import difflib  # only needed once something is wrong already

        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(known))}"
        raise TypeError(f"{name!r} is not an option of a reader; {hint}")


def _one_of(name: str, value: T, choices: Sequence[object]) -> T:
    if value not in choices:
        raise ConfigError(f"{name} is {', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}, not {value!r}")
    return value


def _at_least_one(name: str, value: int) -> int:
    number = whole_number(name, value)
    if number < 1:
        raise ConfigError(f"{name} is at least 1, not {number}")
    return number
