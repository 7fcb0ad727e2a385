"""The command line is read as kcat reads it, and what is wrong with it is told before anything is connected."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lowwater import __version__
from lowwater.cli.cat.command import command


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(
        command, ["-F", "none", "-b", "127.0.0.1:1", *arguments], prog_name="lowwater cat", env=env
    )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-C", "-t <topic> missing"),
        ("-P", "-t <topic> missing"),
        ("-C -t a file", "file/topic list only allowed in producer(-P)/kafkaconsumer(-G) mode"),
        ("-L file", "file/topic list only allowed"),
        ("-C -t a -o junk", "'junk' is not a start position"),
        ("-C -t a -o earlist", "'earlist' is not a start position; did you mean earliest?"),
        ("-C -t a -o 1.5", "'1.5' is not a start position"),
        ("-C -t a -o -", "'-' is not a start position"),
        ("-C -t a -o s@x", "s@ takes milliseconds since 1970, not 'x'"),
        ("-C -t a -o e@x", "e@ takes milliseconds since 1970, not 'x'"),
        ("-C -t orders -o ordres=5", "-o: 'ordres=5' names 'ordres', which is not asked for; did you mean 'orders'?"),
        ("-G g orders -o ordres[0]=5", "did you mean 'orders'?"),
        ("-C -t a -o @2026-11-01", "or state one by --zone"),
        ("-C -t a -o @2026-11-01 --zone Nowhere/Land", "'Nowhere/Land' is no time zone; give UTC, local"),
        ("-C -t a -p x", "'x' is not a valid integer"),
        ("-C -t a -p -2", "-2 is not in the range"),
        ("-C -t a -c x", "'x' is not a valid integer"),
        ("-C -t a -f %y", "Unsupported formatter: %y"),
        ("-C -t a -f a%", "Empty formatter"),
        (r"-C -t a -D \xzz", r"Delimiter \xzz expects hex number"),
        ("-C -t a -s y", "Invalid token 'y' in key pack-format"),
        ("-C -t a -s value=", "value pack-format must not be empty"),
        ("-C -t a -s avro", "Avro and schema registries are not spoken here"),
        ("-C -t a -r http://registry", "Avro and schema registries are not spoken here"),
        ("-C -t a --order sideways", "'sideways' is not one of"),
        ("-G g a --order timestamp", "--order goes with -C"),
        ("-P -t a -s i", "-s serdes only available in the consumer"),
        ("-P -t a -H =v", 'Expected -H "name=value.." or -H "name"'),
        ("-P -t a -z foo", "compression.type='foo' is not allowed"),
        ("-Q", "-t <topic>:<partition>:<offset_or_timestamp> missing"),
        ("-Q -t a", '-t: expected "topic:partition:offset_or_timestamp"'),
        ("-Q -t a:x:0", '-t: expected "topic:partition:offset_or_timestamp"'),
        (f"-Q -t a:{'9' * 5000}:0", '-t: expected "topic:partition:offset_or_timestamp"'),
        (f"-Q -t a:0:{'9' * 5000}", "is no time in milliseconds"),
        (f"-Q -t a:0:-{'9' * 19}", "is no time in milliseconds"),
        (f"-C -t a -o {'9' * 5000}", "larger than any offset"),
        ("-Q -t a:0:0x", "'0x' is not a start position"),
        ("-C -t a -X foo", "-X takes NAME=VALUE, not 'foo'"),
        ("-C -t a -X group.idd=1", "did you mean group.id?"),
        ("-C -t a -y", "-y"),
        ("-C -t", "-t"),
    ],
)
def test_what_is_wrong_is_named_and_the_exit_code_is_that_of_kcat(line: str, problem: str) -> None:
    done = run(*line.split())
    assert done.exit_code == 1
    assert problem in done.output


def test_a_position_that_cannot_be_read_is_pointed_at() -> None:
    assert "\n  stored|-1x\n         ^^^\n" in run("-C", "-t", "a", "-o", "stored|-1x").output


def test_the_version_and_the_settings_are_printed() -> None:
    assert run("-V").output == f"lowwater {__version__}\n"
    listed = run("-X", "list").output
    assert "\nauto.offset.reset " in listed
    assert "\nsasl.password " in listed


def test_settings_in_force_are_dumped_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text(
        "# mine\nfetch.min.bytes=17\nclient.id=of the file\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
    )
    secret = ["-X", "sasl.username=me", "-X", "sasl.password=secret"]
    dumped = run("-C", "-t", "a", "-F", str(path), *secret, "-X", "client.id=mine", "-X", "dump").output
    assert "fetch.min.bytes = 17\n" in dumped
    assert "client.id = mine\n" in dumped
    assert "sasl.username = me\n" in dumped
    assert "secret" not in dumped


def test_the_settings_file_of_kcat_is_read_when_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "kcat.conf"
    path.write_text("topic.auto.offset.reset=earliest\n")
    arguments = ["-C", "-t", "a", "-b", "127.0.0.1:1", "-X", "dump"]
    done = CliRunner().invoke(command, arguments, env={"KCAT_CONFIG": str(path)})
    assert "auto.offset.reset = earliest\n" in done.output


def test_a_file_of_settings_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = run("-C", "-t", "a", "-F", str(tmp_path / "none"))
    assert done.exit_code == 1
    assert "No such file or directory" in done.output


def test_the_mode_is_guessed_from_stdin() -> None:
    done = run("-t", "a", "-m", "1")
    assert "% Auto-selecting Producer mode (use -P or -C to override)\n" in done.output
    assert "127.0.0.1:1 refuses connections" in done.output
    assert done.exit_code == 1


def test_the_last_mode_counts() -> None:
    assert "-t <topic>:<partition>:<offset_or_timestamp> missing" in run("-C", "-Q").output
    assert "Failed to subscribe to 0 topics" in run("-C", "-G", "g").output
