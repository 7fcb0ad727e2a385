"""Orders in JSON, Avro and Protobuf to columns, beside the libraries that Python programs use: CPU time of a row.

python -m bench.decoding; the others, but for pyarrow.json, make Python objects, which are not columns yet.
"""

from __future__ import annotations

import io
import json
import random
import time
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.json
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lowwater.spark.decoding.decoder import Decoder
from lowwater.spark.decoding.spec import DecodeSpec

ROWS = 10_000
ROUNDS = 5
DDL = (
    "order_id long, customer string, amount double, paid boolean, at timestamp,"
    " lines array<struct<sku: string, n: int>>"
)
LINE = {"type": "record", "name": "l", "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}
KINDS = {"order_id": "long", "customer": "string", "amount": "double", "paid": "boolean", "at": "string"}
LINES = {"name": "lines", "type": {"type": "array", "items": LINE}}
FIELDS = [*({"name": name, "type": kind} for name, kind in KINDS.items()), LINES]
AVRO = {"type": "record", "name": "o", "fields": FIELDS}
PROTO = """syntax = "proto3"; message L { string sku = 1; int32 n = 2; }
message O {
  int64 order_id = 1; string customer = 2; double amount = 3; bool paid = 4; string at = 5; repeated L lines = 6;
}"""


def orders() -> list[dict[str, Any]]:
    chance = random.Random(1)

    def line() -> dict[str, Any]:
        return {"sku": f"sku-{chance.randrange(999)}", "n": chance.randrange(9)}

    return [
        {
            "order_id": chance.randrange(10**9),
            "customer": f"customer-{chance.randrange(10**5)}",
            "amount": round(chance.random() * 1000, 2),
            "paid": chance.random() < 0.5,
            "at": f"2024-01-01T12:{chance.randrange(60):02}:{chance.randrange(60):02}Z",
            "lines": [line() for _ in range(3)],
        }
        for _ in range(ROWS)
    ]


def cost_ns(work: Callable[[], object]) -> float:
    """CPU time of a row, the best of some rounds; the first one loads and compiles."""
    work()
    best = float("inf")
    for _ in range(ROUNDS):
        began = time.process_time_ns()
        work()
        best = min(best, time.process_time_ns() - began)
    return best / ROWS


def ours(values: list[bytes], format: str, schema: str, message: str | None = None) -> Callable[[], object]:
    decoder = Decoder.of(DecodeSpec.of(format, schema=schema, message=message))
    column = pa.array(values, pa.binary())
    return lambda: decoder.decode(column)


def tell(name: str, own: Callable[[], object], **others: Callable[[], object]) -> None:
    cost = cost_ns(own)
    beside = ", ".join(f"{other} {found:.0f} ({found / cost:.1f} x)" for other, found in _costs(others))
    print(f"{name}: lowwater {cost:.0f} ns a row; {beside}")


def _costs(others: dict[str, Callable[[], object]]) -> list[tuple[str, float]]:
    return [(name, cost_ns(work)) for name, work in others.items()]


def main() -> None:
    rows = orders()
    texts = [json.dumps(row).encode() for row in rows]
    tell(
        "json",
        ours(texts, "json", DDL),
        json_loads=lambda: [json.loads(text) for text in texts],
        pyarrow_json=columns_of(texts),
    )
    schema = fastavro.parse_schema(AVRO)
    packed = [avro_of(schema, row) for row in rows]
    reading = fastavro.schemaless_reader
    tell(
        "avro",
        ours(packed, "avro", json.dumps(AVRO)),
        fastavro=lambda: [reading(io.BytesIO(one), schema, None) for one in packed],
    )
    message = message_class()
    sent = [message(**row).SerializeToString() for row in rows]
    tell(
        "protobuf",
        ours(sent, "protobuf", PROTO, "O"),
        google=lambda: [fields_of(message.FromString(one)) for one in sent],
    )


def columns_of(texts: list[bytes]) -> Callable[[], object]:
    """All at once, where no row may be bad."""
    data = b"\n".join(texts)
    schema = Decoder.of(DecodeSpec.of("json", schema=DDL)).schema
    reading = pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
    parsing = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    return lambda: pyarrow.json.read_json(pa.BufferReader(data), reading, parsing)


def avro_of(schema: Any, row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return out.getvalue()


def message_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="o.proto", syntax="proto3")
    line, order = file.message_type.add(name="L"), file.message_type.add(name="O")
    kinds = descriptor_pb2.FieldDescriptorProto
    singles = [
        (line, "sku", 1, kinds.TYPE_STRING),
        (line, "n", 2, kinds.TYPE_INT32),
        (order, "order_id", 1, kinds.TYPE_INT64),
    ]
    singles += [(order, "customer", 2, kinds.TYPE_STRING), (order, "amount", 3, kinds.TYPE_DOUBLE)]
    singles += [(order, "paid", 4, kinds.TYPE_BOOL), (order, "at", 5, kinds.TYPE_STRING)]
    for message, name, number, kind in singles:
        message.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    order.field.add(name="lines", number=6, type=kinds.TYPE_MESSAGE, type_name=".L", label=kinds.LABEL_REPEATED)
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("O"))


def fields_of(order: Any) -> tuple[Any, ...]:
    lines = [(line.sku, line.n) for line in order.lines]
    return order.order_id, order.customer, order.amount, order.paid, order.at, lines


if __name__ == "__main__":
    main()
