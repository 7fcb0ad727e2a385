"""Which tables a query reads, as far as that can be told without Spark."""

import pytest

from lowwater.spark.pipeline.sql_names import SqlError, tables_read


def names(sql):
    return [".".join(table.parts) for table in tables_read(sql)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM orders", ["orders"]),
        ("select * from Orders o join payments p on o.id = p.id", ["Orders", "payments"]),
        ("SELECT * FROM a, b AS c, `d e` WHERE x IN (SELECT y FROM f)", ["a", "b", "d e", "f"]),
        ("SELECT * FROM a LEFT OUTER JOIN (SELECT * FROM b) x USING (id)", ["a", "b"]),
        ("SELECT * FROM (a JOIN b ON a.x = b.x)", ["a", "b"]),
        ("FROM a |> WHERE x > 1 |> SELECT x, y", ["a"]),
        ("SELECT * FROM catalog.db.t", ["catalog.db.t"]),
        ("SELECT * FROM parquet.`/data/x`", ["parquet./data/x"]),
        ("SELECT a, b FROM t GROUP BY a, b ORDER BY a, b", ["t"]),
        ("SELECT x FROM a UNION ALL SELECT x FROM b", ["a", "b"]),
        ("TABLE orders", ["orders"]),
        ("SELECT * FROM a JOIN b ON a.x = b.x, c", ["a", "b", "c"]),
        ("(SELECT * FROM a)", ["a"]),
    ],
)
def test_names_stand_behind_from_and_join(sql, expected):
    assert names(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT extract(DAY FROM at) FROM t",
        "SELECT trim(BOTH 'x' FROM name) FROM t",
        "SELECT a IS NOT DISTINCT FROM b FROM t",
        "SELECT 'FROM nowhere', \"it's FROM x\" FROM t -- FROM comment\n",
        "SELECT /* FROM x */ 1 FROM t",
        "SELECT * FROM t LATERAL VIEW explode(list) e AS a, b",
        "SELECT count(*), max(x) FROM t, range(10)",
        "SELECT * FROM t, LATERAL explode(list)",
        "SELECT t.from, t.`join` FROM t",
        "SELECT * FROM t WINDOW w AS (PARTITION BY a, b)",
        r"SELECT 'it\'s FROM x' FROM t",
    ],
)
def test_what_only_looks_like_the_place_of_a_table_is_none(sql):
    assert names(sql) == ["t"]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT * FROM t) SELECT * FROM x",
        "WITH x AS (SELECT 1), y (a, b) AS (SELECT * FROM X) SELECT * FROM y JOIN t",
        "WITH RECURSIVE x AS (SELECT * FROM t) SELECT * FROM x",
    ],
)
def test_names_that_the_query_defines_are_not_read_from_outside(sql):
    assert names(sql) == ["t"]


def test_a_name_is_found_at_its_line_and_column():
    [table] = tables_read("SELECT *\n  FROM\n   orders")
    assert (table.line, table.column) == (3, 3)


@pytest.mark.parametrize(
    ("sql", "what", "place"),
    [
        ("INSERT INTO x SELECT 1", "INSERT does not begin one", (1, 0)),
        ("SELECT (1", "not closed", (1, 7)),
        ("SELECT 1)\nFROM t", "closes nothing", (1, 8)),
        ("SELECT\n 'x FROM t", "a text begins here", (2, 1)),
        ("SELECT `x FROM t", "a name begins here", (1, 7)),
        ("SELECT 1 /* x", "a comment begins here", (1, 9)),
        ("  ", "no query", (1, 0)),
    ],
)
def test_what_is_no_query_is_refused_at_its_place(sql, what, place):
    with pytest.raises(SqlError, match=what) as refused:
        tables_read(sql)
    assert (refused.value.line, refused.value.column) == place
