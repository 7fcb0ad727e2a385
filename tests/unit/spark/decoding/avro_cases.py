"""Random Avro schemas, values of them, and what they are as columns."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
import struct
import uuid
from typing import Any

import fastavro

UTC = datetime.UTC
NAMED = ("record", "enum", "fixed")


class Cases:
    """Everything drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self._names = 0

    def record(self, depth: int = 0) -> dict[str, Any]:
        fields = [{"name": f"f{place}", "type": self.schema(depth + 1)} for place in range(self.chance.randint(1, 5))]
        return {"type": "record", "name": self._name(), "fields": fields}

    def schema(self, depth: int) -> Any:
        makes = [self._primitive, self._logical, self._enum, self._fixed]
        if depth < 4:
            makes += [self._array, self._map, self._record_of, self._nullable, self._union]
        return self.chance.choice(makes)(depth)

    def value(self, schema: Any) -> tuple[Any, Any]:
        """A value as fastavro takes it, and as it is in a column."""
        if isinstance(schema, list):
            return self._union_value(schema)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if isinstance(schema, dict) and "logicalType" in schema:
            return self._logical_value(schema)
        if kind == "record":
            drawn = {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            return {name: one[0] for name, one in drawn.items()}, {name: one[1] for name, one in drawn.items()}
        if kind == "array":
            items = [self.value(schema["items"]) for _ in range(self.chance.choice((0, 0, 1, 3)))]
            return [one[0] for one in items], [one[1] for one in items]
        if kind == "map":
            entries = {f"k{place}é": self.value(schema["values"]) for place in range(self.chance.choice((0, 1, 3)))}
            return {key: one[0] for key, one in entries.items()}, {key: one[1] for key, one in entries.items()}
        if kind == "enum":
            symbol = self.chance.choice(schema["symbols"])
            return symbol, symbol
        if kind == "fixed":
            data = self.chance.randbytes(schema["size"])
            return data, data
        return (self._primitive_value(kind),) * 2

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _primitive(self, depth: int) -> Any:
        return self.chance.choice(("boolean", "int", "long", "float", "double", "bytes", "string"))

    def _logical(self, depth: int) -> Any:
        precision = self.chance.randint(1, 38)
        decimals = {"logicalType": "decimal", "precision": precision, "scale": self.chance.randint(0, precision)}
        return self.chance.choice(
            (
                {"type": "int", "logicalType": "date"},
                {"type": "long", "logicalType": "timestamp-millis"},
                {"type": "long", "logicalType": "timestamp-micros"},
                {"type": "long", "logicalType": "local-timestamp-micros"},
                {"type": "string", "logicalType": "uuid"},
                {"type": "bytes", **decimals},
                {"type": "fixed", "name": self._name(), "size": self.chance.choice((16, 20)), **decimals},
            )
        )

    def _enum(self, depth: int) -> Any:
        return {
            "type": "enum",
            "name": self._name(),
            "symbols": [f"S{place}" for place in range(self.chance.randint(1, 5))],
        }

    def _fixed(self, depth: int) -> Any:
        return {"type": "fixed", "name": self._name(), "size": self.chance.choice((0, 1, 12))}

    def _array(self, depth: int) -> Any:
        return {"type": "array", "items": self.schema(depth + 1)}

    def _map(self, depth: int) -> Any:
        return {"type": "map", "values": self.schema(depth + 1)}

    def _record_of(self, depth: int) -> Any:
        return self.record(depth)

    def _nullable(self, depth: int) -> Any:
        inner = self.schema(depth + 1)
        while isinstance(inner, list):
            inner = self.schema(depth + 1)
        return self.chance.choice((["null", inner], [inner, "null"]))

    def _union(self, depth: int) -> Any:
        branches = self.chance.sample(("boolean", "long", "string", "null", "bytes"), self.chance.randint(2, 4))
        return branches if len(set(branches) - {"null"}) > 1 else [*branches, {"type": "array", "items": "boolean"}]

    def _union_value(self, schema: list[Any]) -> tuple[Any, Any]:
        branch = self.chance.choice(schema)
        if branch == "null":
            return None, None
        value, expected = self.value(branch)
        some = [one for one in schema if one != "null"]
        if len(some) == 1:
            return value, expected
        return value, {f"member{place}": expected if one is branch else None for place, one in enumerate(some)}

    def _primitive_value(self, kind: str) -> Any:
        chance = self.chance
        if kind == "boolean":
            return chance.random() < 0.5
        if kind == "int":
            return chance.choice((0, 1, -1, 2**31 - 1, -(2**31), chance.randint(-1000, 1000)))
        if kind == "long":
            return chance.choice((0, 63, 64, -65, 2**63 - 1, -(2**63), chance.randint(-(10**9), 10**9)))
        if kind == "float":
            return struct.unpack("<f", struct.pack("<f", chance.uniform(-1e6, 1e6)))[0]
        if kind == "double":
            return chance.choice((0.0, -0.0, 1e308, float("inf"), chance.random()))
        if kind == "bytes":
            return chance.randbytes(chance.choice((0, 1, 7, 200)))
        return chance.choice(("", "a", "é" * 100, "日本", "𝄞 and 9 more ascii letters", "\0"))

    def _logical_value(self, schema: dict[str, Any]) -> tuple[Any, Any]:
        chance, kind = self.chance, schema["logicalType"]
        if kind == "decimal":
            digits = chance.randint(0, 10 ** schema["precision"] - 1) * chance.choice((1, -1))
            with decimal.localcontext(decimal.Context(prec=60)):
                return (decimal.Decimal(digits).scaleb(-schema["scale"]),) * 2
        if kind == "date":
            return (datetime.date(1, 1, 1) + datetime.timedelta(days=chance.randint(0, 3_000_000)),) * 2
        if kind == "uuid":
            return (str(uuid.UUID(int=chance.getrandbits(128))),) * 2
        moment = datetime.datetime(1900, 1, 1) + datetime.timedelta(milliseconds=chance.randint(0, 10**13))
        return (moment if kind.startswith("local") else moment.replace(tzinfo=UTC),) * 2


def encode(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


def read(data: bytes, writer: Any, reader: Any) -> Any:
    parsed = [fastavro.parse_schema(json.loads(json.dumps(one))) for one in (writer, reader)]
    return fastavro.schemaless_reader(io.BytesIO(data), *parsed)
