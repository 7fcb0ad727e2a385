"""The promise that cuts are for: with a limit, and whatever backlog, a watermark that is longer than the disorder
within a partition drops nothing, since all partitions come to a time together."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.spark.aligning.cut_query import Query, logs

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SPAN = 3 * DAY
DISORDER, WATERMARK = 5 * MINUTE, 10 * MINUTE
PARTITIONS = 3

BURSTS = st.lists(
    st.tuples(
        st.integers(0, SPAN),  # when
        st.sampled_from([1_000, 10_000, 2 * HOUR]),  # for how long
        st.sampled_from([50, 500, 1_500]),  # rows of a partition
    ),
    min_size=1,
    max_size=6,
)


def backlog(chance: random.Random, bursts: list[tuple[int, int, int]]) -> list[list[int]]:
    """Times by partition: most of them have most bursts, and a few rows in between; a tenth of the rows comes late."""
    partitions = []
    for _ in range(PARTITIONS):
        seen = [burst for burst in bursts if chance.random() < 0.8]
        times = [begins + chance.randrange(lasts) for begins, lasts, rows in seen for _ in range(rows)]
        times += [chance.randrange(SPAN) for _ in range(chance.choice([0, 10, 100]))]
        arrivals = [(one + (chance.randrange(DISORDER) if chance.random() < 0.1 else 0), one) for one in times]
        partitions.append([one for _, one in sorted(arrivals)])
    return partitions


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 32),
    bursts=BURSTS,
    limit=st.sampled_from([100, 300, 1_000]),
    cut=st.sampled_from([HOUR, 12 * HOUR, DAY]),
)
def test_no_watermark_longer_than_the_disorder_drops_a_row(
    seed: int, bursts: list[tuple[int, int, int]], limit: int, cut: int
) -> None:
    partitions = backlog(random.Random(seed), bursts)
    query = Query(logs(*partitions), limit=limit, cut=cut)
    watermark, dropped, read = -1, [], 0
    while (batch := query.batch()) is not None:
        rows = [one for each, (start, end) in batch.items() for one in partitions[each.partition][start:end]]
        dropped += [one for one in rows if one < watermark]
        watermark = max([watermark, *(one - WATERMARK for one in rows)])
        read += len(rows)
    assert read == sum(map(len, partitions))
    assert not dropped


def test_a_late_row_before_a_burst_does_not_part_the_partitions() -> None:
    """Ten hours of nothing, a burst, and a row a minute: what is cut off by the limit is so at one moment."""
    burst = [DAY + 10 * HOUR + at // 100 for at in range(10_000)]
    trail = [DAY + 10 * HOUR + at * MINUTE for at in range(1, 115)]
    first = [DAY - 5_000, DAY - 4_000]
    partitions = [
        [*first, DAY + 1, DAY - 1_000, *burst, *trail, 2 * DAY + 5],
        [*first, *burst, *trail, 2 * DAY + 5],
    ]
    query = Query(logs(*partitions), limit=1_000, cut=DAY)
    watermark = -1
    while (batch := query.batch()) is not None:
        rows = [one for each, (start, end) in batch.items() for one in partitions[each.partition][start:end]]
        assert min(rows, default=watermark) >= watermark
        watermark = max([watermark, *(one - WATERMARK for one in rows)])
