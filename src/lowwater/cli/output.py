"""Results as a table for people, and as JSON or CSV for programs.

@output_options
def command(output: Output) -> None:
    output.rows(COLUMNS, rows)
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from lowwater.cli.printing import UNKNOWN, printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
"""Plain values by the name of their column; None: not known."""

_ENDLESS = 1 << 16
_WIDEST = 72
_CRUMB = 16
_GAP = 2


class Form(Enum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def _shown(value: object) -> str:
    return UNKNOWN if value is None else printable(str(value))


@dataclass(frozen=True, slots=True)
class Column:
    """`name` is that of JSON and CSV. `style` is how it looks, or a function that says so for a row.

    A terminal that is too narrow is not shown columns that are to `spare`, those of the highest number first.
    """

    name: str
    title: str
    shown: Callable[[Any], str] = _shown
    is_number: bool = False
    style: str | Callable[[Row], str] = ""
    is_whole: bool = False
    """Never broken, as numbers are not."""
    spare: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    form: Form = Form.TABLE

    @property
    def is_for_people(self) -> bool:
        return self.form is Form.TABLE

    @property
    def is_json(self) -> bool:
        return self.form is Form.JSON

    @property
    def is_csv(self) -> bool:
        return self.form is Form.CSV

    def rows(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """The rows in the form that was asked for; a table without rows is nothing at all."""
        if self.form is Form.JSON:
            self.document([{column.name: row[column.name] for column in columns} for row in rows])
        elif self.form is Form.CSV:
            _write_csv(columns, rows)
        elif rows:
            print_table(columns, rows)

    def document(self, value: object) -> None:
        """As JSON, whatever else was asked for."""
        click.echo(json.dumps(value, indent=2))


def output_options(command: Callable[..., T]) -> Callable[..., T]:
    """Adds --json and --csv to a command, which gets them as `output`."""

    @functools.wraps(command)
    def with_output(*args: Any, as_json: bool, as_csv: bool, **others: Any) -> T:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv are two answers to one question: give one of them")
        form = Form.JSON if as_json else Form.CSV if as_csv else Form.TABLE
        return command(*args, output=Output(form), **others)

    for option in (
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with a line of names first."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON. What is not known is null."),
    ):
        with_output = option(with_output)
    return with_output


def _write_csv(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    writer.writerows(["" if row[column.name] is None else row[column.name] for column in columns] for row in rows)
    print_csv(text.getvalue())


def print_csv(text: str) -> None:
    """Exactly, unless it goes to a terminal, which would obey what stands in names."""
    sys.stdout.write(printable_lines(text) if sys.stdout.isatty() else text)


def print_table(columns: Sequence[Column], rows: Sequence[Row], *, indent: int = 0) -> None:
    """Fits the terminal, where long names go on in the next line. Elsewhere each row is one line, however long."""
    from rich.table import Table
    from rich.text import Text

    is_terminal = sys.stdout.isatty()
    terminal_width = shutil.get_terminal_size().columns - indent if is_terminal else _ENDLESS
    columns = _fitting(columns, rows, terminal_width)
    cells = [[column.shown(row[column.name]) for row in rows] for column in columns]
    least = [_least_width(column, shown) for column, shown in zip(columns, cells, strict=True)]
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for column, width in zip(columns, least, strict=True):
        table.add_column(
            Text(column.title),
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number or column.is_whole,
            overflow="fold",
            min_width=width,
            max_width=max(width, _WIDEST) if is_terminal and not column.is_number else None,
        )
    for place, row in enumerate(rows):
        styled = zip(columns, cells, strict=True)
        table.add_row(*(Text(shown[place], style=_style(column, row)) for column, shown in styled))
    # Where even the numbers do not fit, the terminal breaks the lines: nothing is cut off.
    console = console_of(max(terminal_width, _total_width(least)))
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(" " * indent + line.rstrip() for line in captured.get().splitlines()), color=True)


def _fitting(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Column]:
    """Without columns to spare, as far as that is needed."""
    kept = list(columns)
    for one in sorted((each for each in columns if each.spare), key=lambda each: -each.spare):
        least = [_least_width(each, [each.shown(row[each.name]) for row in rows]) for each in kept]
        if _total_width(least) <= width:
            break
        kept.remove(one)
    return kept


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _least_width(column: Column, shown: Sequence[str]) -> int:
    """Numbers are never broken, names not into crumbs."""
    widest = max(len(column.title), *map(len, shown))
    return widest if column.is_number or column.is_whole else min(widest, max(len(column.title), _CRUMB))


def _style(column: Column, row: Row) -> str:
    return column.style(row) if callable(column.style) else column.style


def console_of(width: int) -> Console:
    """Names are never read as markup, nor coloured by what they look like."""
    from rich.console import Console

    return Console(width=width, markup=False, highlight=False, emoji=False)
