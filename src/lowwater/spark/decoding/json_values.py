"""JSON objects to columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.json

from lowwater.spark.decoding.arrow_types import arrow_schema
from lowwater.spark.decoding.ddl import parse_ddl
from lowwater.spark.decoding.decoder import Decoded
from lowwater.spark.decoding.spec import DecodeSpec


class JsonValues:
    """Objects of one shape; fields that the shape does not name are left out, missing ones are null."""

    def __init__(self, spec: DecodeSpec) -> None:
        self.schema = arrow_schema(parse_ddl(str(spec.schema)))
        self._options = pyarrow.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")

    def decode(self, values: pa.Array) -> Decoded:
        texts = values.to_pylist()
        rows = [row for row, text in enumerate(texts) if text is not None]
        bad: list[tuple[int, str]] = []
        tables: list[tuple[list[int], pa.Table]] = []
        self._parse(texts, rows, tables, bad)
        bad.sort()
        good = [row for part, _ in tables for row in part]
        places = np.full(len(texts), -1, np.int64)
        places[good] = np.arange(len(good))
        table = pa.concat_tables([one for _, one in tables] or [self.schema.empty_table()]).combine_chunks()
        whole = pa.StructArray.from_arrays([one.combine_chunks() for one in table.columns], fields=list(self.schema))
        struct = whole.take(pa.array(places, mask=places < 0))
        return Decoded(struct, np.array([row for row, _ in bad], np.int32), tuple(reason for _, reason in bad))

    def _parse(
        self, texts: list[bytes], rows: list[int], tables: list[tuple[list[int], pa.Table]], bad: list[tuple[int, str]]
    ) -> None:
        if not rows:
            return None
        data = b"\n".join(texts[row] for row in rows)
        reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
        try:
            table = pyarrow.json.read_json(pa.BufferReader(data), read_options=reading, parse_options=self._options)
            if table.num_rows == len(rows):
                return tables.append((rows, table.select(self.schema.names)))
            reason = "not one JSON object"
        except pa.ArrowInvalid as error:
            reason = str(error)
        if len(rows) == 1:
            return bad.append((rows[0], reason))
        half = len(rows) // 2
        self._parse(texts, rows[:half], tables, bad)
        self._parse(texts, rows[half:], tables, bad)
