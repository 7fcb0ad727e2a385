"""Rows as table, JSON and CSV."""

import csv
import io
import json
import os
import re
import shutil

import pytest

from lowwater.cli.output import Column, Form, Output, Row
from lowwater.cli.printing import number

COLUMNS = (Column("name", "NAME"), Column("count", "COUNT", number, is_number=True))
HOSTILE = 'a,"b"\n\x1b[31m[bold]:smile:'


def printed(capsys: pytest.CaptureFixture[str], form: Form, rows: list[dict[str, object]]) -> str:
    Output(form).rows(COLUMNS, rows)
    return capsys.readouterr().out


def test_names_keep_what_they_are_in_json_and_csv(capsys):
    rows = [{"name": HOSTILE, "count": 1234}, {"name": "", "count": None}]
    assert json.loads(printed(capsys, Form.JSON, rows)) == rows
    assert list(csv.reader(io.StringIO(printed(capsys, Form.CSV, rows)))) == [
        ["name", "count"],
        [HOSTILE, "1234"],
        ["", ""],
    ]


def test_a_terminal_is_shown_names_of_csv_without_commands(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    text = printed(capsys, Form.CSV, [{"name": HOSTILE, "count": 1}])
    assert "\x1b" not in text
    assert r"\x1b[31m[bold]:smile:" in text


def test_a_table_shows_names_as_text_and_numbers_aligned(capsys):
    rows = [{"name": HOSTILE, "count": 1234}, {"name": "東京", "count": None}]
    head, first, second = printed(capsys, Form.TABLE, rows).splitlines()
    assert first == r'a,"b"\n\x1b[31m[bold]:smile:  1,234'
    assert second.endswith("–")
    assert head.index("COUNT") + len("COUNT") == len(first)


def test_no_rows_are_an_empty_list_a_line_of_names_or_nothing(capsys):
    assert [printed(capsys, form, []) for form in Form] == ["", "[]\n", "name,count\n"]


def test_a_row_is_one_line_where_there_is_no_terminal(capsys):
    rows = [{"name": "x" * 5000, "count": 1}]
    assert len(printed(capsys, Form.TABLE, rows).splitlines()) == 2


def in_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, row: Row) -> list[str]:
    """The lines of a table of one row."""
    columns = [Column("name", "NAME", is_whole=True), Column("text", "TEXT"), Column("host", "HOST", spare=1)]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((width, 24)))
    Output(Form.TABLE).rows([*columns, Column("client", "CLIENT", spare=2)], [row])
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_a_narrow_terminal_is_not_shown_what_can_be_spared(monkeypatch, capsys):
    row = {"name": "n" * 20, "text": "t" * 10, "host": "h" * 10, "client": "c" * 10}
    heads = [in_terminal(monkeypatch, capsys, width, row)[0].split() for width in (56, 55, 44, 43)]
    assert heads == [["NAME", "TEXT", "HOST", "CLIENT"], *[["NAME", "TEXT", "HOST"]] * 2, ["NAME", "TEXT"]]


def test_what_is_to_stay_whole_is_not_broken_and_other_text_is(monkeypatch, capsys):
    row = {"name": "n" * 40, "text": "t" * 40, "host": "", "client": ""}
    lines = in_terminal(monkeypatch, capsys, 60, row)
    assert max(map(len, lines)) <= 60
    assert lines[1].split() == ["n" * 40, "t" * 18]
    assert "".join(lines[2:]).replace(" ", "") == "t" * 22
