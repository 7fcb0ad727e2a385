"""For the tests of whoever uses Lowwater, and for its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowwater.testing.embedded import Broker

__all__ = ["Broker"]


def __getattr__(name: str) -> Any:
    # Late: the simulated disk must be usable without loading a broker.
    if name == "Broker":
        from lowwater.testing.embedded import Broker

        return Broker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
