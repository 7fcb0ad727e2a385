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

UNPACKED_BYTES_MAX = 16 * 1024 * 1024
"""Of one partition: a few stored bytes can be many. Further rows come with the next page."""


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

    Mostly one Fetch per leader; an error of one partition does not keep the others from answering.
    """
    appearing = Appearing(cluster)
    driver = cluster.network.driver

    async def attempt(left: list[TopicPartition], left_ms: float) -> dict[TopicPartition, Page | ClientError]:
        until_ms = driver.monotonic_ms() + left_ms
        wanted = {one: offsets[one] for one in left}
        found = await fetch_once(cluster, wanted, left_ms, piece_bytes=bytes_max, isolation=isolation)
        # A broker gives a batch that is larger than asked for only to who is the first in an answer.
        for one in [one for one, each in found.items() if _had_no_room(each)]:
            left_ms = max(until_ms - driver.monotonic_ms(), 1)
            found |= await fetch_once(cluster, {one: wanted[one]}, left_ms, piece_bytes=bytes_max, isolation=isolation)
        pages = await driver.elsewhere(lambda: {one: _page(each, rows_max, isolation) for one, each in found.items()})
        return appearing.judge(pages)

    return await settle(cluster, offsets, attempt)


def _had_no_room(each: FetchedSlice | ClientError) -> bool:
    return isinstance(each, FetchedSlice) and not each.records and each.fetch_offset < each.last_stable


def _page(one: FetchedSlice | ClientError, rows_max: int, isolation: str) -> Page | ClientError:
    if isinstance(one, ClientError):
        return one
    end = one.last_stable if isolation == "read_committed" else one.high_watermark
    rows: list[Row] = []
    size = 0
    try:
        for row in rows_of(one):
            if len(rows) == rows_max or size > UNPACKED_BYTES_MAX:
                return Page(rows, row.offset, one.log_start, end)
            rows.append(row)
            size += len(row.key or b"") + len(row.value or b"")
        return Page(rows, behind(one), one.log_start, end)
    except ClientError as error:
        return error if not rows else Page(rows, rows[-1].offset + 1, one.log_start, end)
