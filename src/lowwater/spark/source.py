"""`format("lowwater")`: what Spark makes readers and writers with.

Spark imports this to find out which formats there are, in every session: so it loads nothing but Spark's own classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )

    from lowwater.spark.decoding.spec import DecodeSpec
    from lowwater.spark.options import SourceOptions
    from lowwater.spark.scan import Scan

NAME = "lowwater"
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
TYPES: Mapping[str, DataType] = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
}


class LowwaterSource(DataSource):
    """Topics as DataFrames. Options are those of Spark's Kafka connector, and some more: docs/spark-options.md."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        # Spark hands this object on: all readers of a query go by the same schemas, and none looks them up again.
        self._decode: DecodeSpec | None = None
        self._offered: StructType | None = None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """All columns that there are with these options. Whether they are for a stream is not known yet."""
        return self._columns(self._options_of_either())

    def reader(self, schema: StructType) -> DataSourceReader:
        from lowwater.spark.batch_reader import LowwaterReader

        return LowwaterReader(self._scan(schema, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        from lowwater.errors import ConfigError
        from lowwater.spark.stream_reader import LowwaterStreamReader, RefusedStreamReader

        try:
            return LowwaterStreamReader(self._scan(schema, streaming=True))
        except ConfigError as error:
            return RefusedStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from lowwater.spark.sink import batch_writer

        return batch_writer(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802  Spark's name
        from lowwater.spark.sink import stream_writer

        return stream_writer(self.options, schema, overwrite)

    def _scan(self, schema: StructType, *, streaming: bool) -> Scan:
        from lowwater.spark.columns import choose
        from lowwater.spark.extra import require_spark_extra
        from lowwater.spark.options import SourceOptions
        from lowwater.spark.scan import Scan

        require_spark_extra()
        options = SourceOptions.parse(self.options, streaming=streaming)
        chosen = choose(schema, self._columns(options))
        return Scan(options, chosen, self._decode)

    def _options_of_either(self) -> SourceOptions:
        from lowwater.spark.option_table import OptionError
        from lowwater.spark.options import SourceOptions

        try:
            return SourceOptions.parse(self.options, streaming=False)
        except OptionError as error:
            try:
                return SourceOptions.parse(self.options, streaming=True)
            except OptionError:
                raise error from None

    def _columns(self, options: SourceOptions) -> StructType:
        if self._offered is None:
            self._decode = None if options.decode is None else options.decode.loaded()
            self._offered = offered(options, self._decode)
        return self._offered


def register(spark: SparkSession) -> None:
    """For sessions that do not look for formats by themselves."""
    spark.dataSource.register(LowwaterSource)


def offered(options: SourceOptions, decode: DecodeSpec | None) -> StructType:
    """The columns that there are."""
    types: dict[str, Any] = {name: TYPES[name] for name in options.columns}
    if decode is not None:
        from pyspark.sql.pandas.types import from_arrow_type

        from lowwater.spark.decoding.decoder import Decoder
        from lowwater.spark.shaping import types_of

        made = types_of(Decoder.of(decode))
        types |= {name: from_arrow_type(made[name]) for name in made if name not in TYPES or name == decode.column}
    return StructType([StructField(name, kind) for name, kind in types.items()])
