"""`lowwater topics describe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lowwater.cli.connecting import Connected, Connection, connection_options
from lowwater.cli.output import Column, Output, Row, output_options, print_table
from lowwater.cli.printing import age, counted, number, printable, size
from lowwater.cli.topics.completing import complete_topics
from lowwater.cli.topics.settings import humane

if TYPE_CHECKING:
    from lowwater.cli.topics.facts import Facts
    from lowwater.client.admin.configs import ConfigEntry
    from lowwater.client.admin.topics import DescribedPartition, DescribedTopic


def _brokers(nodes: list[int]) -> str:
    return ",".join(map(str, nodes))


def _leader(node: int | None) -> str:
    return "none" if node is None else str(node)


def _leader_style(row: Row) -> str:
    return "red" if row["leader"] is None else ""


def _in_sync_style(row: Row) -> str:
    return "red" if len(row["in_sync"]) < len(row["replicas"]) else ""


_SET_BY = {
    "topic": "this topic",
    "broker_altered": "the broker, while running",
    "all_brokers_altered": "all brokers, while running",
    "broker_file": "the broker's file",
}
PARTITION_COLUMNS = (
    Column("partition", "PARTITION", str, is_number=True),
    Column("leader", "LEADER", _leader, is_number=True, style=_leader_style),
    Column("replicas", "REPLICAS", _brokers),
    Column("in_sync", "IN SYNC", _brokers, style=_in_sync_style),
    Column("start", "START", number, is_number=True),
    Column("end", "END", number, is_number=True),
    Column("bytes", "SIZE", size, is_number=True),
    Column("newest_ms", "NEWEST"),
)
SETTING_COLUMNS = (
    Column("name", "SETTING", is_whole=True),
    Column("value", "VALUE"),
    Column("source", "SET BY", lambda source: _SET_BY.get(source, source), style="dim"),
)


@click.command("describe")
@click.argument("topics", metavar="TOPIC…", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("-s", "--settings", "all_settings", is_flag=True, help="All settings, not only the topic's own.")
@output_options
@connection_options
def command(topics: tuple[str, ...], all_settings: bool, output: Output, connection: Connection) -> None:
    """Show partitions, offsets, sizes and settings of topics.

    A TOPIC is a name, a pattern such as 'orders*', or a regular expression that begins with ^.
    """
    from lowwater.cli.topics.choosing import chosen, not_there
    from lowwater.client.admin.topics import list_topics

    with connection.open() as connected:
        known = connected.run(list_topics(connected.cluster, internal=True))
        names, missing = chosen(topics, known, at_least_one=True)
        if names:
            documents = _documents(connected, {name: known[name] for name in names}, all_settings=all_settings)
            _print(documents, output, connected.driver.now_ms())
        if missing:
            raise not_there(missing, known)


def _documents(connected: Connected, topics: dict[str, DescribedTopic], *, all_settings: bool) -> list[dict[str, Any]]:
    from lowwater.cli.topics.facts import facts_of
    from lowwater.client.admin.configs import describe_configs

    facts = connected.run(facts_of(connected.cluster, topics, ages=True))
    found = connected.run(describe_configs(connected.cluster, topics))
    settings = {resource.name: entries for resource, entries in found.items()}
    return [_document(topic, facts, settings.get(topic.name), all_settings) for topic in topics.values()]


def _document(
    topic: DescribedTopic, facts: Facts, settings: dict[str, ConfigEntry] | None, all_settings: bool
) -> dict[str, Any]:
    from lowwater.cli.topics.facts import id_text, partitions_of

    partitions = partitions_of(topic)
    shown = None if settings is None else [each for each in settings.values() if all_settings or each.is_own]
    return {
        "topic": topic.name,
        "id": id_text(topic.id),
        "internal": topic.is_internal,
        "replicas": topic.replication_factor,
        "records": facts.count(partitions),
        "bytes": facts.size(partitions),
        "newest_ms": facts.newest_of(partitions),
        "settings": None if shown is None else [_setting(each) for each in shown],
        "partitions": [_partition(topic.name, one, facts) for one in topic.partitions],
    }


def _setting(entry: ConfigEntry) -> Row:
    return {"name": entry.name, "value": entry.value, "source": entry.source.name.lower()}


def _partition(topic: str, one: DescribedPartition, facts: Facts) -> Row:
    from lowwater.types import TopicPartition

    key = TopicPartition(topic, one.partition)
    bounds = facts.bounds.get(key)
    return {
        "partition": one.partition,
        "leader": one.leader if one.leader >= 0 else None,
        "replicas": list(one.replicas),
        "in_sync": list(one.in_sync),
        "start": None if bounds is None else bounds.start,
        "end": None if bounds is None else bounds.end,
        "bytes": facts.sizes.get(key),
        "newest_ms": facts.newest.get(key),
    }


# ---- showing


def _print(documents: list[dict[str, Any]], output: Output, now_ms: int) -> None:
    if output.is_for_people:
        for place, document in enumerate(documents):
            click.echo("\n" if place else "", nl=False)
            _print_topic(document, now_ms)
    elif output.is_csv:
        rows = [{"topic": one["topic"], **_flat(row)} for one in documents for row in one["partitions"]]
        output.rows((Column("topic", ""), *PARTITION_COLUMNS), rows)
    else:
        output.document(documents)


def _flat(row: Row) -> Row:
    return {**row, "replicas": _brokers(row["replicas"]), "in_sync": _brokers(row["in_sync"])}


def _print_topic(document: dict[str, Any], now_ms: int) -> None:
    click.secho(printable(document["topic"]), bold=True, nl=False)
    click.echo(f"  {_summary(document, now_ms)}")
    if document["id"] is not None:
        click.secho(f"id {document['id']}", dim=True)
    click.echo()
    print_table(_columns(document["partitions"], now_ms), document["partitions"], indent=2)
    _print_settings(document["settings"])


def _columns(partitions: list[Row], now_ms: int) -> list[Column]:
    """Who is in sync is told when somebody is not: a line of 80 characters has little room."""
    all_in_sync = all(len(row["in_sync"]) == len(row["replicas"]) for row in partitions)
    ages = Column("newest_ms", "NEWEST", lambda value: age(value, now_ms))
    columns = [column for column in PARTITION_COLUMNS if not (all_in_sync and column.name == "in_sync")]
    return [ages if column.name == ages.name else column for column in columns]


def _summary(document: dict[str, Any], now_ms: int) -> str:
    parts = [counted(len(document["partitions"]), "partition"), counted(document["replicas"], "replica")]
    if document["records"] is not None:
        parts.append(counted(document["records"], "record"))
    if document["bytes"] is not None:
        parts.append(size(document["bytes"]))
    if document["newest_ms"] is not None:
        parts.append(f"newest {age(document['newest_ms'], now_ms)}")
    if document["internal"]:
        parts.append("internal")
    return ", ".join(parts)


def _print_settings(settings: list[Row] | None) -> None:
    click.echo()
    if settings is None:
        click.secho("  Its settings cannot be read.", dim=True)
    elif settings:
        shown = [{**row, "value": humane(row["name"], row["value"])} for row in settings]
        print_table(SETTING_COLUMNS, shown, indent=2)
    else:
        click.secho("  No settings of its own: all are the broker's. --settings shows them.", dim=True)
