"""Which columns a schema of the user's asks for."""

from __future__ import annotations

import pytest
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from lowwater.errors import ConfigError
from lowwater.spark.columns import Chosen, choose

OFFERED = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("offset", LongType()),
        StructField("timestampType", IntegerType()),
    ]
)


def field(name: str, kind: object, *, nullable: bool = True) -> StructType:
    return StructType([StructField(name, kind, nullable)])


def test_all_that_is_offered_can_be_chosen() -> None:
    assert choose(OFFERED, OFFERED) == tuple(Chosen(each.name) for each in OFFERED)


def test_the_order_is_the_users() -> None:
    wanted = StructType([StructField("offset", LongType(), False), StructField("key", BinaryType())])
    assert choose(wanted, OFFERED) == (Chosen("offset", is_nullable=False), Chosen("key"))


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (field("offset", StringType()), "the column offset is bigint, not string: cast it in the query"),
        (field("Timestamptype", IntegerType()), "did you mean timestampType"),
        (field("headers", StringType()), "set the option includeHeaders to true"),
        (field("elsewhere", StringType()), "there are key, value, offset, timestampType"),
        (field("value", BinaryType(), nullable=False), "the column value may be null"),
        (StructType([*field("key", BinaryType()), *field("key", BinaryType())]), "names the column key twice"),
        (StructType([]), "names no column"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_the_reason(wanted: StructType, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        choose(wanted, OFFERED)
