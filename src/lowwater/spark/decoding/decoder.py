"""Where a spec becomes a decoder, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lowwater.spark.decoding.arrow_types import arrow_schema
from lowwater.spark.decoding.errors import DecodeError, UndecodableRowError
from lowwater.spark.decoding.shapes import StructOf
from lowwater.spark.decoding.spec import AVRO, JSON, DecodeSpec
from lowwater.spark.decoding.spec_shapes import shape_of


@dataclass(frozen=True, slots=True)
class Decoded:
    """As many rows as came in. `bad` are the rows that cannot be decoded, ascending; they are null in `struct`."""

    struct: pa.StructArray
    bad: npt.NDArray[np.int32]
    reasons: tuple[str, ...]

    def fail(
        self, column: str, topics: Sequence[object], partitions: Sequence[object], offsets: Sequence[object]
    ) -> None:
        """UndecodableRowError for the first bad row, if there is one. The columns are Arrow's."""
        if not len(self.bad):
            return
        row = int(self.bad[0])
        topic, partition, offset = (_plain(one[row]) for one in (topics, partitions, offsets))
        raise UndecodableRowError(column, str(topic), int(str(partition)), int(str(offset)), self.reasons[0])

    def errors(self) -> pa.StringArray:
        """Reasons as a column: null for the rows that were decoded."""
        reasons: list[str | None] = [None] * len(self.struct)
        for row, reason in zip(self.bad, self.reasons, strict=True):
            reasons[row] = reason
        return pa.array(reasons, pa.utf8())

    def raw(self, values: pa.Array) -> pa.BinaryArray:
        """The bytes of the bad rows as a column: null for the rows that were decoded."""
        is_good = np.ones(len(self.struct), bool)
        is_good[self.bad] = False
        return pa.compute.if_else(pa.array(is_good), pa.scalar(None, pa.binary()), values.cast(pa.binary()))


class Format(Protocol):
    """One format with its schema: what a decoder drives."""

    def decode(self, values: pa.Array) -> Decoded: ...


class Decoder:
    """Values to struct columns, by a spec that is whole (`DecodeSpec.loaded`). Not for several threads at once."""

    def __init__(self, spec: DecodeSpec, shape: StructOf) -> None:
        self.spec = spec
        self.schema = arrow_schema(shape)
        self._form: Format | None = None

    @classmethod
    def of(cls, spec: DecodeSpec) -> Decoder:
        """SchemaError when the schema cannot be understood. Kernels are loaded by the first rows: types need none."""
        whole = spec.loaded()
        return cls(whole, shape_of(whole))

    @property
    def type(self) -> pa.StructType:
        """The struct, whose fields are all nullable, in Spark's types."""
        return pa.struct(list(self.schema))

    def decode(self, values: pa.Array) -> Decoded:
        """A null value gives a null row, not a bad one."""
        if not pa.types.is_binary(values.type) and not pa.types.is_string(values.type):
            raise DecodeError(f"binary values can be decoded, not {values.type}")
        if self._form is None:
            self._form = _form(self.spec)
        return self._form.decode(values)


def _form(spec: DecodeSpec) -> Format:
    if spec.format == JSON:
        from lowwater.spark.decoding.json_values import JsonValues

        return JsonValues(spec)
    if spec.format == AVRO:
        from lowwater.spark.decoding.avro_values import AvroValues

        return AvroValues(spec)
    from lowwater.spark.decoding.protobuf_values import ProtobufValues

    return ProtobufValues(spec)


def _plain(value: object) -> object:
    return value.as_py() if isinstance(value, pa.Scalar) else value
