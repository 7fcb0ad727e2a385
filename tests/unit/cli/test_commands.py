"""Commands and options that there are not: what is said instead."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from lowwater.cli.main import COMMANDS, lowwater


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["topcs"], "No such command 'topcs'. Did you mean 'topics'?"),
        (["brokr", "--data-dir", "x"], "Did you mean 'broker'?"),
        (["topics", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["topics", "list", "--jsn"], "'--json'"),
        (["broker", "--data-dri", "x"], "Did you mean '--data-dir'?"),
        (["xyzzy"], f"There are {', '.join(COMMANDS)}."),
    ],
    ids=" ".join,
)
def test_what_is_misspelt_is_refused_with_what_was_probably_meant(line: list[str], says: str) -> None:
    done = CliRunner().invoke(lowwater, line)
    assert done.exit_code == 2
    assert says in done.output


def test_every_command_can_be_asked_for_help() -> None:
    for name in COMMANDS:
        assert CliRunner().invoke(lowwater, [name, "--help"]).exit_code == 0
