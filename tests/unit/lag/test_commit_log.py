"""Where commits of a group stand, and who commits."""

from __future__ import annotations

import pytest

from lowwater.client.group_offsets import Committed
from lowwater.lag.commit_log import home_of
from lowwater.lag.owners import checkpoint_rules, lineages_of
from lowwater.spark.commits import note
from lowwater.types import TopicPartition


# As Java has it: Math.abs("…".hashCode()) % 50, with its care for the smallest number.
@pytest.mark.parametrize(
    ("group", "hash_code"),
    [("", 0), ("a", 97), ("billing", -109829509), ("polygenelubricants", -(1 << 31)),
     ("\U0001f600", 1772899)],
)  # fmt: skip
def test_the_home_of_a_group_is_by_the_hash_of_java(group: str, hash_code: int) -> None:
    assert home_of(group, 50) == (hash_code & 0x7FFFFFFF) % 50
    assert home_of(group, 1) == 0


def test_spark_jobs_are_known_by_what_they_write_beside_their_offsets() -> None:
    committed = {
        TopicPartition("orders", 0): Committed(5, metadata=note("0a1b2c3d")),
        TopicPartition("orders", 1): Committed(5, metadata=note("00000000")),
        TopicPartition("orders", 2): Committed(5, metadata="lowwater: a note"),
    }
    assert lineages_of(committed) == ("00000000", "0a1b2c3d")
    assert lineages_of({}) == ()
    assert "lowwater pipeline reset" in checkpoint_rules("g", ("0a1b2c3d",))
