"""The questions about times, asked at brokers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lowwater.client.offsets import list_offsets
from lowwater.spark.aligning.logs import Rows, Stamp
from lowwater.spark.driver_client import DriverClient
from lowwater.spark.offsets import Range
from lowwater.types import TopicPartition

_COLUMNS = ("topic", "partition", "offset", "timestamp")
_UNSTAMPED_MS = -1


class BrokerLogs:
    """`asked` counts what one broker is asked at most; to fetch rows counts as one."""

    def __init__(self, client: DriverClient, isolation: str) -> None:
        self._client = client
        self._isolation = isolation
        self.asked = 0

    @property
    def has_markers(self) -> bool:
        """Who reads them without waiting for their ends cares little where transactions end."""
        return self._isolation == "read_committed"

    def first_at(self, partitions: Collection[TopicPartition], time_ms: int) -> dict[TopicPartition, Stamp | None]:
        if not partitions:
            return {}
        self.asked += 1
        # Times before 1970 mean something else on the wire; no record has one, but for those that have no time.
        asked = dict.fromkeys(partitions, max(time_ms, 0))
        found = self._client.run(list_offsets(self._client.cluster, asked, isolation=self._isolation))
        return {one: None if each.offset < 0 else Stamp(each.offset, each.timestamp_ms) for one, each in found.items()}

    def rows(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Rows]:
        self.asked += 1
        return self._client.run(self._fetched(ranges))

    async def _fetched(self, ranges: Mapping[TopicPartition, Range]) -> dict[TopicPartition, Rows]:
        # Only a driver that has to look at rows needs the kernels.
        from lowwater.client.ranges import OffsetRange, RangeReading

        reading = RangeReading(
            self._client.cluster,
            [OffsetRange(one, *each) for one, each in ranges.items()],
            on_lost=lambda lost: None,  # whoever reads the rows tells of it
            columns=_COLUMNS,
            isolation=self._isolation,
        )
        found: dict[TopicPartition, tuple[list[int], list[int]]] = {one: ([], []) for one in ranges}
        try:
            while (batch := await reading.next()) is not None:
                topics, partitions, offsets = (batch.column(name).to_pylist() for name in _COLUMNS[:3])
                times = batch.column("timestamp").cast("int64").to_pylist()
                for topic, partition, offset, time_ms in zip(topics, partitions, offsets, times, strict=True):
                    into = found[TopicPartition(topic, partition)]
                    into[0].append(offset)
                    into[1].append(_UNSTAMPED_MS if time_ms is None else time_ms)
        finally:
            await reading.close()
        return {one: Rows(*each) for one, each in found.items()}
