"""`lowwater groups import`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lowwater.cli.connecting import Connection, connection_options
from lowwater.cli.groups.changing import Doing, doing_options, plans_by_group, show_and_do
from lowwater.cli.groups.choosing import complete_groups
from lowwater.cli.output import Output, output_options

if TYPE_CHECKING:
    from lowwater.types import TopicPartition


@click.command("import")
@click.argument("groups", metavar="[GROUP]…", nargs=-1, shell_complete=complete_groups)
@click.option("--from-file", metavar="FILE", default="-", show_default=True, help="The file; - is stdin.")
@doing_options
@output_options
@connection_options
def command(groups: tuple[str, ...], from_file: str, doing: Doing, output: Output, connection: Connection) -> None:
    """Set offsets from a file, as `lowwater groups export` or kafka-consumer-groups.sh has written it.

    \b
      lowwater groups export billing > offsets.csv
      lowwater groups import billing --from-file offsets.csv --execute
      lowwater groups import copy-of-billing --from-file offsets.csv --execute

    Lines are topic,partition,offset of the one group that is named, or group,topic,partition,offset. What lies outside
    the log becomes its first or last offset.
    """
    offsets = offsets_of_file(from_file, groups)
    with connection.open() as connected:
        show_and_do(connected, plans_by_group(connected, offsets, "import"), doing, output)


def offsets_of_file(path: str, groups: Sequence[str]) -> dict[str, dict[TopicPartition, int]]:
    """By group. click.UsageError for a file that cannot be read, or says what cannot be."""
    from lowwater.errors import ConfigError
    from lowwater.lag.offsets_csv import from_csv

    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text("utf-8-sig")
        found = from_csv(text, list(dict.fromkeys(groups)))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{path} is not a text in UTF-8") from None
    except ConfigError as error:
        raise click.UsageError(f"{path}: {error}") from None
    if not found:
        raise click.UsageError(f"{path} has no offsets in it")
    return found
