"""Small values shared by every layer."""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview

OUR_OWN = "__lowwater_"
"""How topics begin that these tools keep for themselves: what is changed in groups, what Spark lost or has written."""
TOPIC_NAME_BYTES_MAX = 249
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def topic_name_problem(name: str) -> str | None:
    """Why `name` cannot be a topic's name, or None when it can."""
    if not name:
        return "a topic name cannot be empty"
    if name in (".", ".."):
        return f"a topic cannot be called {name!r}"
    if len(name) > TOPIC_NAME_BYTES_MAX:
        return f"a topic name has at most {TOPIC_NAME_BYTES_MAX} characters, this one has {len(name)}"
    if not _TOPIC_NAME.fullmatch(name):
        return f"topic name {name!r} has characters other than a-z A-Z 0-9 . _ -"
    return None
