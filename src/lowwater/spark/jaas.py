"""Logins as Java's clients are told them: a JAAS text names a login module and its options.

`org.apache.kafka.common.security.plain.PlainLoginModule required username="anna" password="…";`
No error here shows the text: passwords stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from lowwater.spark.option_table import OptionError

NAME = "kafka.sasl.jaas.config"
FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
SHAPE = '<login module> required <name>="<value>" …;'

_TOKEN = re.compile(
    r"""(?P<blank> \s+ | //[^\n]* | /\*.*?\*/ )
      | (?P<quoted> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
      | (?P<mark> [;=] )
      | (?P<word> [^\s;="']+ )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasEntry:
    """`module` is the last part of the class's name: platforms ship Kafka's classes under packages of their own."""

    module: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module!r}, options {sorted(self.options)})"


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_jaas(text: str) -> JaasEntry:
    """The one login module of a text. OptionError says where it ceases to be one, without showing it."""
    tokens = list(_tokens(text))
    if not tokens:
        raise OptionError(f"{NAME} is empty; it takes {SHAPE}")
    if tokens[-1].text != ";" or tokens[-1].kind != "mark":
        raise OptionError(f"{NAME} does not end with a semicolon; it takes {SHAPE}")
    entry = tokens[:-1]
    if len(entry) < 2 or entry[0].kind != "word" or entry[1].text.lower() not in FLAGS:
        raise _misread(entry[min(1, len(entry) - 1)] if entry else tokens[0], "a login module and `required`")
    return JaasEntry(entry[0].text.rpartition(".")[2], dict(_options(entry[2:])))


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _misread(_Token("", "", at), "a quote that ends")
        kind, at = str(found.lastgroup), found.end()
        if kind == "quoted":
            yield _Token(kind, _ESCAPE.sub(_unescaped, found[0][1:-1]), found.start())
        elif kind != "blank":
            yield _Token(kind, found[0], found.start())


def _options(tokens: list[_Token]) -> Iterator[tuple[str, str]]:
    for place in range(0, len(tokens), 3):
        name, equals, value = (*tokens[place : place + 3], None, None)[:3]
        assert name is not None
        if name.kind == "mark":
            problem = "one login module, not several" if name.text == ";" else "the name of an option"
            raise _misread(name, problem)
        if equals is None or equals.text != "=" or value is None or value.kind == "mark":
            raise _misread(name, 'a name and its value, as name="value"')
        yield name.text, value.text


def _unescaped(found: re.Match[str]) -> str:
    what = found[1]
    return chr(int(what, 8)) if what[0] in "01234567" else _ESCAPED.get(what, what)


def _misread(token: _Token, expected: str) -> OptionError:
    return OptionError(f"{NAME} is not understood at character {token.at}: expected {expected}; it takes {SHAPE}")
