"""Keys with the hash and the partition that Java's producer gives them, recorded for machines without Java.

python -m tests.conformance.golden.key_partitions
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterable
from pathlib import Path

from peers import java

SOURCE = Path(__file__).resolve().parent.parent / "java" / "KeyPartitions.java"
RECORDED = Path(__file__).resolve().parent / "key_partitions.json"
Asked = tuple[bytes, int]
"""A key, and how many partitions there are."""


def ask_java(asked: Iterable[Asked]) -> list[tuple[int, int]]:
    """(murmur2, partition) of each."""
    lines = "".join(f"{key.hex()},{partitions}\n" for key, partitions in asked)
    command = java.command("KeyPartitions", classes=java.compiled(SOURCE))
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=100)
    answers = (line.split(",") for line in done.stdout.split())
    return [(int(hashed), int(partition)) for hashed, partition in answers]


def draw(seed: int, count: int) -> list[Asked]:
    """Keys of every length modulo four, bytes of either sign, texts of other alphabets."""
    chance = random.Random(seed)
    texts = ["", "a", "key", "order-1", "München", "ключ", "鍵", "💧", "user:0000000001"]
    keys = [text.encode() for text in texts] + [
        bytes([value] * size) for value in (0, 127, 128, 255) for size in range(6)
    ]
    keys += [chance.randbytes(chance.randrange(64)) for _ in range(count - len(keys))]
    return [(key, chance.choice([1, 2, 3, 6, 64, 1_000, 2**31 - 1])) for key in keys]


def record() -> None:
    asked = draw(4, 80)
    lines = [
        json.dumps({"key": key.hex(), "partitions": partitions, "hash": hashed, "partition": partition})
        for (key, partitions), (hashed, partition) in zip(asked, ask_java(asked), strict=True)
    ]
    RECORDED.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record()
