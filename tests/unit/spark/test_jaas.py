"""JAAS texts: what Java's users write, and that no part of one is ever shown."""

from __future__ import annotations

import pytest

from lowwater.spark.jaas import parse_jaas
from lowwater.spark.option_table import OptionError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_login_module_and_its_options_are_read() -> None:
    entry = parse_jaas(f'{PLAIN} required username="anna" password="open sesame";')
    assert entry.module == "PlainLoginModule"
    assert entry.options == {"username": "anna", "password": "open sesame"}


def test_packages_of_platforms_in_front_of_the_module_do_not_matter() -> None:
    assert parse_jaas(f'kafkashaded.{PLAIN} required username="a" password="b";').module == "PlainLoginModule"


def test_lines_and_comments_are_read_over() -> None:
    text = f"""{PLAIN} required   // who
        /* we
           are */
        username = 'anna'
        password=plain-word.7
        ;"""
    assert parse_jaas(text).options == {"username": "anna", "password": "plain-word.7"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r"\"quoted\"", '"quoted"'),
        (r"back\\slash", "back\\slash"),
        (r"tab\there", "tab\there"),
        (r"\101\7!", "A\a!"),
        ("semi;colon=equals//no comment", "semi;colon=equals//no comment"),
        ("it's", "it's"),
        ("", ""),
        ("pässwörd", "pässwörd"),
    ],
)
def test_quoted_values_are_as_java_reads_them(written: str, meant: str) -> None:
    assert parse_jaas(f'{PLAIN} required username="u" password="{written}";').options["password"] == meant


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (f'{PLAIN} required username="u" password="hush-1"', "does not end with a semicolon"),
        (f'{PLAIN} required username="u" password="hush-1;', "a quote that ends"),
        (f'{PLAIN} username="u" password="hush-1";', "a login module and `required`"),
        (f"{PLAIN};", "a login module and `required`"),
        (";", "a login module and `required`"),
        (f'{PLAIN} required username "hush-1";', 'name="value"'),
        (f"{PLAIN} required password=;", 'name="value"'),
        (f'{PLAIN} required ="hush-1";', "the name of an option"),
        (f'{PLAIN} required password="hush-1"; {PLAIN} required password="hush-1";', "one login module"),
    ],
)
def test_what_is_no_jaas_text_is_refused_without_being_shown(text: str, problem: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_jaas(text)
    assert problem in str(refused.value)
    assert "hush-1" not in str(refused.value)


def test_an_entry_does_not_show_its_values() -> None:
    assert "hush-1" not in repr(parse_jaas(f'{PLAIN} required username="u" password="hush-1";'))
