"""Under which identity a producer without transactions writes: none, or one that lets brokers know retries."""

from __future__ import annotations

from collections.abc import Callable

from lowwater.client.cluster import Cluster
from lowwater.client.errors import ClientError
from lowwater.client.flow import Flow
from lowwater.client.producing.identity import NOBODY, Identity, ask_identity
from lowwater.client.producing.requests import VERSIONS
from lowwater.client.producing.rules import Rules
from lowwater.types import TopicPartition


class Anonymous:
    """Brokers cannot tell a retry from a new batch."""

    produce_versions = VERSIONS

    def current(self) -> Identity:
        return NOBODY

    def begin_anew(self, known: Identity) -> bool:
        return False

    def admits(self, partition: TopicPartition) -> bool:
        return True


class Idempotent(Anonymous):
    """A producer id is asked for when it is first needed. `on_change` says that there is one, or why there is none."""

    def __init__(self, cluster: Cluster, rules: Rules, on_change: Callable[[ClientError | None], None]) -> None:
        self._cluster = cluster
        self._rules = rules
        self._on_change = on_change
        self._identity: Identity | None = None
        self._asking: Flow[None] | None = None

    def current(self) -> Identity | None:  # type: ignore[override]
        if self._identity is None and (self._asking is None or self._asking.done):
            self._asking = Flow(self._ask())
        return self._identity

    def begin_anew(self, known: Identity) -> bool:
        if self._identity == known:
            # None: all epochs are used up, and another producer id is asked for.
            self._identity = known.next_epoch()
        return True

    async def _ask(self) -> None:
        try:
            self._identity = await ask_identity(self._cluster, self._rules.delivery_ms)
        except ClientError as error:
            self._on_change(error)
        else:
            self._on_change(None)
