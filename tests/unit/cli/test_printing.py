"""Numbers, ages and names as people read them."""

import pytest

from lowwater.cli.printing import age, counted, duration, number, printable, printable_lines, size

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10_240, "10.0 KiB"),
        (102_400, "100 KiB"),
        (1023 * 1024, "1.00 MiB"),
        (1 << 20, "1.00 MiB"),
        (5 * 10**18, "4.34 EiB"),
    ],
)
def test_sizes_have_three_digits(value, shown):
    assert size(value) == shown


@pytest.mark.parametrize(
    ("span_ms", "shown"),
    [
        (5, "5 ms"),
        (1500, "1 s"),
        (90_000, "1 min 30 s"),
        (HOUR, "1 h"),
        (HOUR + 30 * MINUTE + 1, "1 h 30 min"),
        (7 * DAY, "7 d"),
        (40 * DAY + HOUR, "40 d"),
    ],
)
def test_durations_are_told_in_the_units_that_matter(span_ms, shown):
    assert duration(span_ms) == shown


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [
        (None, "–"),
        (10 * DAY, "now"),
        (10 * DAY - 3 * MINUTE, "3 min ago"),
        (10 * DAY - 26 * HOUR, "1 d ago"),
        (10 * DAY + 2 * HOUR, "in 2 h"),
    ],
)
def test_ages_are_told_in_the_largest_unit(timestamp_ms, shown):
    assert age(timestamp_ms, 10 * DAY) == shown


def test_numbers_are_exact_and_in_groups_of_three():
    assert [number(value) for value in (None, 0, 999, 1234567)] == ["–", "0", "999", "1,234,567"]
    assert (counted(1, "topic"), counted(2, "topic"), counted(1000, "entry", "entries")) == (
        "1 topic",
        "2 topics",
        "1,000 entries",
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders.eu-1", "orders.eu-1"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
        ("søppel 東京", "søppel 東京"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\nb\tc\0", r"a\nb\tc\x00"),
        ("\u202eturned", r"\u202eturned"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_nothing_in_a_name_is_a_command_to_the_terminal(text, shown):
    assert printable(text) == shown


def test_errors_keep_their_lines():
    assert printable_lines("one\n\x1btwo") == "one\n\\x1btwo"
