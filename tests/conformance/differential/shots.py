"""A request for both brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Ids = Mapping[str, bytes]


class Shot(NamedTuple):
    """Topic ids differ between the brokers, so the request is made anew for each."""

    api: str
    version: int
    make: Callable[[Ids], Any]
