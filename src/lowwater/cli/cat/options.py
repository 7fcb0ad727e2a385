"""The options of `lowwater cat`: kcat's letters, and two names of our own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from lowwater import __version__
from lowwater.cli.cat.asked import NO_AVRO, Mode
from lowwater.cli.connecting import BOOTSTRAP
from lowwater.cli.starting import read_zone

TIMEOUT_S = 5
MODE = "lowwater.cat.mode"
"""Where the chosen mode is kept in the context: the last one on the command line."""


def _mode(letter: str, help_text: str) -> Callable[[Any], Any]:
    def chosen(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.meta[MODE] = Mode(letter)

    return click.option(f"-{letter}", is_flag=True, expose_value=False, callback=chosen, help=help_text)


def _group(ctx: click.Context, _: click.Parameter, group: str | None) -> str | None:
    if group is not None:
        ctx.meta[MODE] = Mode.GROUP
    return group


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"lowwater {__version__}")
        ctx.exit()


def _refuse_registry(_: click.Context, __: click.Parameter, url: str | None) -> None:
    if url is not None:
        raise click.UsageError(NO_AVRO)


OPTIONS = (
    _mode("C", "Consume: print records."),
    _mode("P", "Produce: send stdin, or files. Taken when stdin is not a terminal and no mode is given. "
          "Needs pip install 'lowwater[reader]'."),
    click.option("-G", "group", metavar="GROUP", callback=_group,
                 help="Consume as a member of a group; topics follow."),
    _mode("L", "List brokers, topics and partitions."),
    _mode("Q", "Query offsets by time: -t topic:partition:timestamp, repeatable."),
    click.option("-b", "bootstrap", metavar="HOST:PORT,…",
                 help=f"Where a broker is.  [default: $LOWWATER_BOOTSTRAP, or {BOOTSTRAP}]"),
    click.option("-t", "topics", metavar="TOPIC", multiple=True, help="Topic to read, write or list."),
    click.option("-p", "partition", metavar="N", type=click.IntRange(-1), help="Partition; -1 for any."),
    click.option("-o", "offsets", metavar="POSITION", multiple=True,
                 help="Where to start: beginning, end, stored, 17, -5, s@MS, -1h, today, @2026-11-01T00:00Z, "
                      "stored|-1h, …; e@MS says where to stop."),
    click.option("-e", "exits_at_end", is_flag=True, help="Exit at the end of the last partition."),
    click.option("-c", "count", metavar="N", type=click.IntRange(0), help="Exit after so many records."),
    click.option("-f", "layout", metavar="FORMAT",
                 help=r"%s value, %k key, %t topic, %p partition, %o offset, %T timestamp, %h headers, "
                      r"%S %K sizes, %R size in 4 bytes, %%; \n \r \t \xXX."),
    click.option("-J", "json", is_flag=True, help="JSON, one record per line; with -L and -Q too."),
    click.option("-s", "packings", metavar="[key=|value=]LETTERS", multiple=True,
                 help="Unpack numbers: < > b B h H i I q Q c, s the rest as text, $ the end."),
    click.option("-D", "delimiter", metavar="TEXT", default=r"\n", help=r"What stands between records.  [default: \n]"),
    click.option("-K", "key_delimiter", metavar="TEXT",
                 help="What stands between key and value; keys are printed or read."),
    click.option("-O", "prints_offsets", is_flag=True,
                 help="Print offsets in front, with the delimiter of -K or a tab."),
    click.option("-Z", "nulls", is_flag=True,
                 help="Print NULL where there is no key or value; send empty ones as null."),
    click.option("-u", "is_unbuffered", is_flag=True, help="Write out each record at once."),
    click.option("-k", "fixed_key", metavar="KEY", help="Key of all records that bring none."),
    click.option("-H", "headers", metavar="NAME=VALUE", multiple=True, help="Header of all records. Repeatable."),
    click.option("-l", "by_line", is_flag=True, help="Send the lines of the file, not the file as one record."),
    click.option("-T", "is_teed", is_flag=True, help="Print what is sent."),
    click.option("-z", "codec", metavar="CODEC", help="Compress with gzip, snappy, lz4 or zstd."),
    click.option("-X", "properties", metavar="NAME=VALUE", multiple=True,
                 help="A client setting; list prints them all, dump prints those in force."),
    click.option("-F", "settings_file", metavar="FILE",
                 help="A file of client settings; none for none.  [default: $KCAT_CONFIG, or ~/.config/kcat.conf]"),
    click.option("-E", "goes_on", is_flag=True, help="Go on after what is wrong with one record or for a while."),
    click.option("-m", "timeout_s", metavar="SECONDS", type=click.IntRange(1), default=TIMEOUT_S, show_default=True,
                 help="How long brokers may take to answer."),
    click.option("-q", "is_quiet", is_flag=True, help="Tell nothing beside the records."),
    click.option("-v", "verbosity", count=True, help="Tell more. Repeatable."),
    click.option("-d", "debug", metavar="CONTEXTS", help="Accepted and ignored."),
    click.option("-r", metavar="URL", expose_value=False, callback=_refuse_registry,
                 help="Refused: no schema registries."),
    click.option("-V", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
                 help="Print the version."),
    click.option("--order", type=click.Choice(["timestamp", "partition"]),
                 help="Across partitions by time, instead of as records arrive."),
    click.option("--zone", metavar="ZONE", callback=read_zone,
                 help="Of dates in -o and -Q that name none: UTC, local, Europe/Berlin."),
    click.argument("names", metavar="[FILE|TOPIC]...", nargs=-1),
)  # fmt: skip


def kcat_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(OPTIONS):
        command = option(command)
    return command
