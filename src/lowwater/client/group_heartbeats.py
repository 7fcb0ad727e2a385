"""A member says that it is there, and hears what becomes of the group."""

from __future__ import annotations

from collections.abc import Callable

from lowwater.client.coordinator import Coordinator, Identity
from lowwater.client.driver import sleep
from lowwater.client.errors import ClientError, RebalancingError, broker_error
from lowwater.client.flow import Flow
from lowwater.client.network import COORDINATING
from lowwater.errors import ConfigError
from lowwater.wire.messages import HeartbeatRequest


class Heartbeats:
    """Between `start` and `stop`, one at a time. What the coordinator says about the member goes to `tell`."""

    def __init__(self, coordinator: Coordinator, tell: Callable[[ClientError], None]) -> None:
        config = coordinator.cluster.network.config
        self._coordinator = coordinator
        self._tell = tell
        self._interval_ms = config.int("heartbeat.interval.ms")
        session_ms = config.int("session.timeout.ms")
        if self._interval_ms >= session_ms:
            raise ConfigError("heartbeat.interval.ms has to be less than session.timeout.ms; a third of it is usual")
        self._timeout_ms = min(session_ms, config.int("request.timeout.ms"))
        self._flow: Flow[None] | None = None
        self.trouble: ClientError | None = None  # why the last one had no answer

    def start(self, identity: Identity) -> None:
        self.stop()
        self._flow = Flow(self._beat(identity))

    def stop(self) -> None:
        flow, self._flow = self._flow, None
        if flow is not None:
            flow.cancel()

    async def _beat(self, identity: Identity) -> None:
        cluster = self._coordinator.cluster
        request = HeartbeatRequest(
            group_id=self._coordinator.group,
            generation_id=identity.generation,
            member_id=identity.member_id,
            group_instance_id=identity.instance_id,
        )
        failures = 0
        while True:
            again_ms = min(self._interval_ms, cluster.retry.wait_ms(failures)) if failures else self._interval_ms
            await sleep(cluster.network.driver, again_ms)
            try:
                # Joining has that lane too, but not at the same time; a slow commit on the usual one costs no session.
                response = await self._coordinator.ask(request, lane=COORDINATING, timeout_ms=self._timeout_ms)
            except ClientError as error:
                self.trouble, failures = error, failures + 1
                if error.retriable:
                    continue
                self._tell(error)
                return
            self.trouble, failures = None, 0
            if not response.error_code:
                continue
            news = broker_error(response.error_code, f"group {self._coordinator.group!r}")
            self._tell(news)
            # While the group gathers, a member that still has to finish something has to stay known.
            if not isinstance(news, RebalancingError):
                return
