"""Start positions as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.errors import ConfigError, LowwaterError
from lowwater.positions.grammar import (
    FORMS,
    STOP_FORMS,
    PositionError,
    parse_start,
    parse_starts,
    parse_stop,
    parse_stops,
)
from lowwater.positions.position import (
    Ago,
    AtOffset,
    AtTime,
    BeforeEnd,
    Choice,
    Earliest,
    Latest,
    StartPosition,
    StartPositions,
    Stored,
    Today,
)
from lowwater.types import TopicPartition

NOVEMBER_MS = 1_793_491_200_000  # 2026-11-01T00:00Z
BERLIN = timezone(timedelta(hours=1))
LONG = "9" * 5000  # more digits than Python reads


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("earliest", Earliest()),
        ("beginning", Earliest()),
        ("latest", Latest()),
        ("end", Latest()),
        ("stored", Stored()),
        ("committed", Stored()),
        ("Earliest", Earliest()),
        (" latest ", Latest()),
        ("0", AtOffset(0)),
        ("17", AtOffset(17)),
        ("9223372036854775807", AtOffset((1 << 63) - 1)),
        ("-5", BeforeEnd(5)),
        ("-0", BeforeEnd(0)),
        ("-1h", Ago(3_600_000)),
        ("-30m", Ago(1_800_000)),
        ("-7d", Ago(604_800_000)),
        ("-2w", Ago(1_209_600_000)),
        ("-10s", Ago(10_000)),
        ("-1h30m", Ago(5_400_000)),
        ("today", Today(UTC)),
        ("s@0", AtTime(0)),
        ("s@1793491200000", AtTime(NOVEMBER_MS)),
        ("@2026-11-01T00:00Z", AtTime(NOVEMBER_MS)),
        ("@2026-11-01 00:00Z", AtTime(NOVEMBER_MS)),
        ("@2026-11-01T00:00:00Z", AtTime(NOVEMBER_MS)),
        ("@2026-11-01T00:00:00.123Z", AtTime(NOVEMBER_MS + 123)),
        ("@2026-11-01T02:00+02:00", AtTime(NOVEMBER_MS)),
        ("@2026-11-01T02:00+0200", AtTime(NOVEMBER_MS)),
        ("@2026-10-31T19:00-05:00", AtTime(NOVEMBER_MS)),
        ("@2026-11-01Z", AtTime(NOVEMBER_MS)),
        ("@2026-11-01+02:00", AtTime(NOVEMBER_MS - 7_200_000)),
    ],
)
def test_each_form_has_one_meaning(text: str, choice: Choice) -> None:
    assert parse_start(text) == StartPosition((choice,))


def test_a_date_or_a_time_without_a_zone_takes_the_one_that_is_stated() -> None:
    assert parse_start("@2026-11-01", UTC).choices == (AtTime(NOVEMBER_MS),)
    assert parse_start("@2026-11-01T01:00", BERLIN).choices == (AtTime(NOVEMBER_MS),)
    assert parse_start("@2026-11-01T00:00Z", BERLIN).choices == (AtTime(NOVEMBER_MS),)
    with pytest.raises(PositionError, match="has no time zone"):
        parse_start("@2026-11-01")


def test_today_begins_at_midnight_of_its_zone() -> None:
    half_past_midnight_in_berlin = NOVEMBER_MS - 1_800_000
    assert Today(UTC).timestamp(half_past_midnight_in_berlin) == NOVEMBER_MS - 86_400_000
    assert Today(BERLIN).timestamp(half_past_midnight_in_berlin) == NOVEMBER_MS - 3_600_000


def test_ago_never_reaches_behind_the_beginning_of_time() -> None:
    assert Ago(5000).timestamp(7000) == 2000
    assert Ago(5000).timestamp(3000) == 0


def test_fallbacks_stand_in_their_order() -> None:
    assert parse_start("stored|-1h|earliest").choices == (Stored(), Ago(3_600_000), Earliest())


def test_topics_and_partitions_have_wishes_of_their_own() -> None:
    wishes = parse_starts("orders=stored|earliest, metrics=-1h,orders[0]=17")
    assert wishes.of(TopicPartition("orders", 0)) == parse_start("17")
    assert wishes.of(TopicPartition("orders", 1)) == parse_start("stored|earliest")
    assert wishes.of(TopicPartition("metrics", 3)) == parse_start("-1h")
    assert wishes.of(TopicPartition("other", 0)) is None
    assert wishes.needs_group


def test_a_wish_without_a_name_is_that_of_all_others() -> None:
    wishes = parse_starts("latest,orders[2]=earliest")
    assert wishes.of(TopicPartition("orders", 0)) == parse_start("latest")
    assert wishes.of(TopicPartition("orders", 2)) == parse_start("earliest")
    assert not wishes.needs_group


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("", "", "missing"),
        ("earlyest", "earlyest", "not a start position"),
        ("stored||earliest", "", "missing"),
        ("stored|", "", "missing"),
        ("stored|-1x", "-1x", "not a start position"),
        ("1.5", "1.5", "not a start position"),
        ("0x10", "0x10", "not a start position"),
        ("1_000", "1_000", "not a start position"),
        ("+5", "+5", "not a start position"),
        ("--5", "--5", "not a start position"),
        ("-h", "-h", "not a start position"),
        ("٣", "٣", "not a start position"),
        ("9223372036854775808", "9223372036854775808", "larger than any offset"),
        ("-9223372036854775808", "-9223372036854775808", "larger than any offset"),
        (LONG, LONG, "larger than any offset"),
        (f"-{LONG}", f"-{LONG}", "larger than any offset"),
        ("-999999d999999d", "-999999d999999d", "longer ago"),
        (f"-{LONG}s", f"-{LONG}s", "longer ago"),
        (f"s@{LONG}", LONG, "milliseconds since 1970"),
        ("s@9223372036854775808", "9223372036854775808", "milliseconds since 1970"),
        (f"@{LONG}", LONG, "not a date"),
        ("s@", "", "milliseconds since 1970"),
        ("s@12h", "12h", "milliseconds since 1970"),
        ("s@-5", "-5", "milliseconds since 1970"),
        ("e@5", "e@5", "where to stop"),
        ("@", "", "not a date"),
        ("@1793491200000", "1793491200000", "s@"),
        ("@20261101", "20261101", "not a date"),
        ("@2026-13-01T00:00Z", "2026-13-01T00:00Z", "is no moment"),
        ("@2026-11-01-12", "2026-11-01-12", "is not a date"),
        ("@2026-11-01T25:00Z", "2026-11-01T25:00Z", "is no moment"),
        ("@2026-11-01T00:00", "2026-11-01T00:00", "has no time zone"),
        ("@1969-12-31T23:59Z", "1969-12-31T23:59Z", "before 1970"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, part: str, why: str) -> None:
    with pytest.raises(PositionError, match=why) as refused:
        parse_start(text)
    assert refused.value.part == part
    assert text[refused.value.at :].startswith(part)


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("orders=", "", "missing"),
        ("=latest", "", "cannot be empty"),
        ("or ders=latest", "or ders", "characters other than"),
        ("orders[x]=latest", "x", "not the number of a partition"),
        ("orders[-1]=latest", "-1", "not the number of a partition"),
        ("orders[]=latest", "", "not the number of a partition"),
        ("orders[2147483648]=1", "2147483648", "not the number of a partition"),
        (f"orders[{LONG}]=1", LONG, "not the number of a partition"),
        ("orders[0=latest", "orders[0", "neither a topic nor a partition"),
        ("orders=latest,orders=earliest", "orders", "named twice"),
        ("orders[0]=1,orders[0]=2", "orders[0]", "named twice"),
        ("latest,earliest", "earliest", "second wish"),
        ("orders=latest,", "", "missing"),
        ("orders=stored|metrics", "metrics", "not a start position"),
    ],
)
def test_a_bad_list_is_refused_with_the_place_of_its_fault(text: str, part: str, why: str) -> None:
    with pytest.raises(PositionError, match=why) as refused:
        parse_starts(text)
    assert refused.value.part == part
    assert text[refused.value.at :].startswith(part)


def test_zeros_in_front_of_a_number_say_nothing() -> None:
    assert parse_start("0" * 5000 + "17") == parse_start("17")
    assert parse_starts(f"orders[{'0' * 5000}]=17") == parse_starts("orders[0]=17")


def test_a_moment_that_a_zone_cannot_place_is_refused() -> None:
    class Nowhere(tzinfo):
        def utcoffset(self, moment: datetime | None) -> timedelta:
            raise OverflowError("timestamp out of range for platform time_t")

    with pytest.raises(PositionError, match="is no moment"):
        parse_start("@9999-12-31", Nowhere())


def test_a_refusal_is_a_wrong_setting_and_a_wrong_value() -> None:
    for kind in (PositionError, ConfigError, LowwaterError, ValueError):
        with pytest.raises(kind):
            parse_start("yesterday")


def test_a_refusal_shows_the_place_and_lists_every_form() -> None:
    with pytest.raises(PositionError) as refused:
        parse_starts("orders=stored|-1x")
    lines = str(refused.value).splitlines()
    assert lines[1] == "  orders=stored|-1x"
    assert lines[2] == "                ^^^"
    for form, _ in FORMS:
        assert form in str(refused.value)


def test_control_characters_of_a_bad_position_do_not_reach_the_terminal() -> None:
    with pytest.raises(PositionError) as refused:
        parse_start("\x1b[2Jearliest")
    assert "\x1b" not in str(refused.value)


def test_every_form_that_is_listed_can_be_read() -> None:
    for forms, _ in FORMS:
        for form in forms.split(", "):
            assert parse_starts(form, UTC) != StartPositions()


def test_a_stop_is_a_position_or_kcats_own_form() -> None:
    assert parse_stop("e@1793491200000") == AtTime(NOVEMBER_MS)
    assert parse_stop("@2026-11-01T00:00Z") == AtTime(NOVEMBER_MS)
    assert parse_stop("latest") == Latest()
    assert parse_stop("100") == AtOffset(100)
    assert parse_stop("-10m") == Ago(600_000)
    assert parse_stops("orders[2]=3,latest").of(TopicPartition("orders", 2)) == parse_start("3")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("stored", "'stored' is not a stop: it says where to start"),
        ("-1h|latest", "'-1h|latest' is not a stop: it takes no fallbacks"),
        ("orders=3,latest", "'orders=3,latest' is not a stop: it takes no list of topics"),
        ("latst", "'latst' is not a stop; did you mean latest?"),
        ("stord", "'stord' is not a stop"),
        ("", "a stop is missing here"),
        ("e@soon", "e@ takes milliseconds since 1970, not 'soon'"),
    ],
)
def test_what_is_not_a_stop_is_told_the_forms_of_stops(text: str, why: str) -> None:
    with pytest.raises(PositionError) as refused:
        parse_stop(text)
    assert refused.value.why == why
    _, _, forms = str(refused.value).partition("A stop is one of:\n")
    assert "e@1793491200000" in forms
    assert "stored" not in forms
    assert "orders" not in forms


def test_every_form_of_a_stop_that_is_listed_can_be_read() -> None:
    for forms, _ in STOP_FORMS:
        for form in forms.split(", "):
            assert parse_stop(form, UTC) is not None


def test_a_time_without_a_zone_is_told_what_sets_one_where_something_does() -> None:
    with pytest.raises(PositionError) as refused:
        parse_starts("@2026-11-01", None, "--zone")
    assert refused.value.why.endswith("add Z or +01:00 and the like, or state one by --zone")
    with pytest.raises(PositionError) as refused:
        parse_starts("@2026-11-01")
    assert refused.value.why.endswith("add Z or +01:00 and the like")


CHOICES = st.one_of(
    st.just(Earliest()),
    st.just(Latest()),
    st.just(Stored()),
    st.just(Today(UTC)),
    st.integers(0, (1 << 63) - 1).map(AtOffset),
    st.integers(0, (1 << 63) - 1).map(BeforeEnd),
    st.integers(0, (1 << 63) - 1).map(AtTime),
    st.integers(0, 10_000_000_000).map(lambda seconds: Ago(seconds * 1000)),
)
WISHES = st.lists(CHOICES, min_size=1, max_size=4).map(lambda choices: StartPosition(tuple(choices)))
TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True).filter(lambda name: name not in (".", ".."))


@given(
    st.none() | WISHES,
    st.dictionaries(TOPICS, WISHES, max_size=3),
    st.dictionaries(st.builds(TopicPartition, TOPICS, st.integers(0, (1 << 31) - 1)), WISHES, max_size=3),
)
def test_what_is_shown_can_be_read_again(
    default: StartPosition | None, topics: dict[str, StartPosition], partitions: dict[TopicPartition, StartPosition]
) -> None:
    wishes = StartPositions(default, topics, partitions)
    if default is not None or topics or partitions:
        assert parse_starts(str(wishes)) == wishes


PIECES = st.sampled_from(
    [*"0123456789@-+|,=[]:.Z \n", "s@", "e@", "stored", "today", "orders", "9" * 20, LONG, "2026-11-01T"]
)


@given(st.text(max_size=40) | st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=10_000))
def test_no_text_does_anything_but_be_read_or_be_refused(text: str) -> None:
    try:
        read: StartPositions | PositionError = parse_starts(text)
    except PositionError as refused:
        read = refused
    assert isinstance(read, StartPositions) or 0 <= read.at <= len(text)
