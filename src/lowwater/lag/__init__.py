"""How far groups are behind: observed, judged, explained; and offsets that are set, with a way back.

observation = await observer.observe(["billing"])     # asks the cluster
history.take(observation)                             # remembers
report = judge(observation, history)                  # pure

For plain code, all of it at once: `group_lag(["billing"], bootstrap="localhost:9092")`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when it is used
    from lowwater.lag.report import Report


def group_lag(
    groups: Iterable[str] | None = None,
    *,
    bootstrap: str | None = None,
    config: Mapping[str, object] | None = None,
    allowed: int = 0,
    watch_for_ms: float = 0,
) -> Report:
    """How far these groups are behind, or all; `watch_for_ms` looks for so long, to know rates and whether lag shrinks.

    Returns when it is done. ClientError when no broker can be asked at all; what else could not be is in `faults`.
    """
    from lowwater.client.admin.opening import config_of
    from lowwater.client.blocking import BlockingDriver
    from lowwater.client.cluster import Cluster
    from lowwater.client.network import Network
    from lowwater.lag.collecting import report

    settings = config_of(bootstrap, config)
    driver = BlockingDriver(settings)
    network = Network(settings, driver)
    try:
        return driver.run(report(Cluster(network), groups, allowed=allowed, watch_for_ms=watch_for_ms))
    finally:
        network.close()
        driver.close()
