"""Some records of partitions as Python values, for people to look at: neither numpy nor Arrow is needed here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lowwater.client.admin.asking import Appearing
from lowwater.client.admin.outcomes import Outcomes, settle
from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.fetching_once import fetch_once
from lowwater.client.rows import Row, behind, rows_of
from lowwater.client.slices import FetchedSlice
from lowwater.types import TopicPartition


class Page(NamedTuple):
    """`next_offset` is where to go on; `end`, where it ends for this reader: of committed records, the LSO."""

    rows: list[Row]
    next_offset: int
    log_start: int
    end: int


async def browse(
    cluster: Cluster,
    offsets: Mapping[TopicPartition, int],
    *,
    bytes_max: int = 64 * 1024,
    rows_max: int = 1_000,
    isolation: str = "read_uncommitted",
) -> Outcomes[TopicPartition, Page]:
    """By partition the records from an offset on: as many batches as fit into `bytes_max`, and one at least.

    One Fetch per leader; an error of one partition does not keep the others from answering.
    """
    appearing = Appearing(cluster)

    async def attempt(left: list[TopicPartition], left_ms: float) -> dict[TopicPartition, Page | ClientError]:
        wanted = {one: offsets[one] for one in left}
        found = await fetch_once(cluster, wanted, left_ms, piece_bytes=bytes_max, isolation=isolation)
        return appearing.judge({
            one: each if isinstance(each, ClientError) else _page(each, rows_max, isolation)
            for one, each in found.items()
        })  # fmt: skip

    return await settle(cluster, offsets, attempt)


def _page(one: FetchedSlice, rows_max: int, isolation: str) -> Page | ClientError:
    end = one.last_stable if isolation == "read_committed" else one.high_watermark
    rows: list[Row] = []
    try:
        for row in rows_of(one):
            if len(rows) == rows_max:
                return Page(rows, row.offset, one.log_start, end)
            rows.append(row)
        return Page(rows, behind(one), one.log_start, end)
    except ClientError as error:
        return error if not rows else Page(rows, rows[-1].offset + 1, one.log_start, end)
