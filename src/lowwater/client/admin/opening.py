"""What both faces need to begin."""

from __future__ import annotations

from collections.abc import Mapping

from lowwater.client.arguments import settings_of
from lowwater.client.config import ClientConfig

BOOTSTRAP = "localhost:9092"


def config_of(bootstrap: str | None, config: Mapping[str, object] | None) -> ClientConfig:
    """The settings of a client; `bootstrap` wins over those given as bootstrap.servers."""
    given = settings_of(config)
    if bootstrap is not None:
        for name in ("bootstrap.servers", "metadata.broker.list"):
            given.pop(name, None)
        given["bootstrap.servers"] = bootstrap
    elif not given.keys() & {"bootstrap.servers", "metadata.broker.list"}:
        given["bootstrap.servers"] = BOOTSTRAP
    return ClientConfig(given)
