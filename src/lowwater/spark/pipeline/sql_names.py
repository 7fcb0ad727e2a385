"""Which tables a query reads, found without Spark, so that a misspelt name is told before a JVM starts.

Not a parser of SQL: it knows where names of tables stand, and what looks like such a place but is none. Everything
else is left to Spark's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>r?'(?:\\.|[^'\\])*'|r?"(?:\\.|[^"\\])*")
    |(?P<quoted>`(?:``|[^`])*`)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<number>[0-9][A-Za-z0-9_.]*)
    |(?P<open>'|"|`|/\*)
    |(?P<pipe>\|>)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUERY_WORDS = frozenset({"select", "with", "from", "values", "table", "map", "reduce"})
# A FROM inside the parentheses of these is part of the function's own grammar.
_FROM_FUNCTIONS = frozenset({"extract", "trim", "substring", "substr", "overlay", "position"})
_ENDS_OF_FROM = frozenset(
    {
        *("where", "group", "order", "having", "limit", "offset", "union", "except", "minus", "intersect", "select"),
        *("window", "cluster", "distribute", "sort", "qualify", "lateral", "pivot", "unpivot", "set", "|>"),
    }
)
_UNCLOSED = {"'": "a text", '"': "a text", "`": "a name", "/*": "a comment"}


class SqlError(ValueError):
    """`line` begins at 1, `column` at 0, as Spark counts them."""

    def __init__(self, what: str, line: int, column: int) -> None:
        super().__init__(what)
        self.line = line
        self.column = column


class TableName(NamedTuple):
    """`parts` has more than one when a catalog or a database is named."""

    parts: tuple[str, ...]
    line: int
    column: int


class _Token(NamedTuple):
    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """In lower case; a name in backticks is no keyword."""
        return self.text.lower() if self.kind in ("word", "pipe", "sign") else ""

    @property
    def name(self) -> str | None:
        if self.kind == "word":
            return self.text
        return self.text[1:-1].replace("``", "`") if self.kind == "quoted" else None


def tables_read(sql: str) -> list[TableName]:
    """Names of tables in the order of the text, without those that the query defines itself (WITH …).

    SqlError for what is no query, or does not end.
    """
    tokens = list(_tokens(sql))
    if not tokens:
        raise SqlError("there is no query here", 1, 0)
    first = next((token for token in tokens if token.word != "("), tokens[0])
    if first.word not in _QUERY_WORDS:
        raise SqlError(f"a step is a query, and {first.text} does not begin one", *_place(sql, first.at))
    _check_parentheses(sql, tokens)
    defined = _defined_names(tokens)
    found = _Tables(sql, tokens).found
    return [table for table in found if len(table.parts) > 1 or table.parts[0].lower() not in defined]


def _tokens(sql: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(sql):
        kind = found.lastgroup or ""
        if kind == "open":
            raise SqlError(f"{_UNCLOSED[found[0]]} begins here and does not end", *_place(sql, found.start()))
        if kind != "blank":
            yield _Token(kind, found[0], found.start())


def _place(sql: str, at: int) -> tuple[int, int]:
    return sql.count("\n", 0, at) + 1, at - (sql.rfind("\n", 0, at) + 1)


def _check_parentheses(sql: str, tokens: list[_Token]) -> None:
    opened: list[_Token] = []
    for token in tokens:
        if token.word == "(":
            opened.append(token)
        elif token.word == ")" and not opened:
            raise SqlError("this parenthesis closes nothing", *_place(sql, token.at))
        elif token.word == ")":
            opened.pop()
    if opened:
        raise SqlError("this parenthesis is not closed", *_place(sql, opened[-1].at))


def _defined_names(tokens: list[_Token]) -> set[str]:
    """`x AS (SELECT …` and `x (a, b) AS (SELECT …`, wherever they stand."""
    names = set()
    for place, token in enumerate(tokens):
        if token.name is None or _word(tokens, place - 1) not in ("with", "recursive", ","):
            continue
        after = _behind_columns(tokens, place + 1)
        if _word(tokens, after) == "as" and _word(tokens, after + 1) == "(":
            names.add(token.name.lower())
    return names


def _behind_columns(tokens: list[_Token], place: int) -> int:
    if _word(tokens, place) != "(":
        return place
    while _word(tokens, place) not in (")", ""):
        place += 1
    return place + 1


def _word(tokens: list[_Token], place: int) -> str:
    return tokens[place].word or tokens[place].kind if 0 <= place < len(tokens) else ""


class _Tables:
    """One walk over the tokens. Each parenthesis has a state of its own: whether a FROM clause is open in it."""

    def __init__(self, sql: str, tokens: list[_Token]) -> None:
        self._sql = sql
        self._tokens = tokens
        self._in_from = [False]
        self._is_function = [False]
        self.found: list[TableName] = []
        place = 0
        while place < len(tokens):
            place = self._step(place)

    def _step(self, place: int) -> int:
        word = self._tokens[place].word
        if word == "(":
            self._in_from.append(False)
            self._is_function.append(_word(self._tokens, place - 1) in _FROM_FUNCTIONS)
        elif word == ")":
            self._in_from.pop()
            self._is_function.pop()
        elif self._begins_relation(word, place):
            self._in_from[-1] = True
            return self._relation(place + 1)
        elif word in _ENDS_OF_FROM:
            self._in_from[-1] = False
        return place + 1

    def _begins_relation(self, word: str, place: int) -> bool:
        before = _word(self._tokens, place - 1)
        if word == ",":
            return self._in_from[-1]
        if word == "from":
            return not self._is_function[-1] and before not in ("distinct", ".")
        return word in ("join", "table") and before != "."

    def _relation(self, place: int) -> int:
        """What stands where a table may stand: a name, a function, a query or further relations in parentheses."""
        word = _word(self._tokens, place)
        if word == "(":
            self._in_from.append(False)
            self._is_function.append(False)
            is_query = _word(self._tokens, place + 1) in _QUERY_WORDS
            if is_query:
                return place + 1
            self._in_from[-1] = True
            return self._relation(place + 1)
        if word in ("lateral", "values", "from", "table") or not self._is_name(place):
            return place
        return self._named(place)

    def _is_name(self, place: int) -> bool:
        return place < len(self._tokens) and self._tokens[place].name is not None

    def _named(self, place: int) -> int:
        first = self._tokens[place]
        parts = [first.name or ""]
        place += 1
        while _word(self._tokens, place) == "." and self._is_name(place + 1):
            parts.append(self._tokens[place + 1].name or "")
            place += 2
        if _word(self._tokens, place) != "(":
            self.found.append(TableName(tuple(parts), *_place(self._sql, first.at)))
        return place
