"""Writes vectors.json anew, from Kafka's own classes: `python -m tests.conformance.golden.record`.

The bytes are Kafka's, made from JSON; our encoder has no part in them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.conformance.golden.as_json import as_json
from tests.conformance.golden.instances import KAFKA_LACKS, Style, instance, messages
from tests.conformance.golden.oracle import Oracle

VECTORS = Path(__file__).with_name("vectors.json")
STYLES = (Style.FULL, Style.NULLS, Style.EMPTY)


def vectors(oracle: Oracle) -> Iterator[dict[str, Any]]:
    rng = random.Random(0)
    for cls, version in messages():
        if (cls.__name__, version) in KAFKA_LACKS:
            continue
        for style in STYLES:
            message = as_json(instance(cls, version, style, rng), version, with_records=True)
            data = oracle.encode(cls, version, message)
            yield {"name": cls.__name__, "version": version, "hex": data.hex(), "json": message}


def main() -> None:
    with Oracle() as oracle:
        lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in vectors(oracle)]
    VECTORS.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} vectors, {VECTORS.stat().st_size} bytes")


if __name__ == "__main__":
    main()
