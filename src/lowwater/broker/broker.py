"""The broker: topics and their logs behind the router, with the housekeeping that keeps them in shape."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lowwater.broker.durability import GroupCommit
from lowwater.broker.fetch_sessions import FetchSessions
from lowwater.broker.partition import Partition
from lowwater.broker.pending import Pending
from lowwater.broker.topics import Topics
from lowwater.config import BrokerConfig
from lowwater.errors import ApiError, ErrorCode
from lowwater.log.store import LogStore
from lowwater.ports import Clock, Disk, Ids, Offload, Scheduler

logger = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything the broker needs from outside; the simulated ones are in `testing`."""

    disk: Disk
    clock: Clock
    ids: Ids
    scheduler: Scheduler
    offload: Offload


class Broker:
    """State of one node. Handlers receive it with each request."""

    def __init__(self, config: BrokerConfig, data_dir: str, surroundings: Surroundings) -> None:
        self.config = config
        self.disk = surroundings.disk
        self.clock = surroundings.clock
        self.ids = surroundings.ids
        self.scheduler = surroundings.scheduler
        self._offload = surroundings.offload
        self.advertised = Endpoint("127.0.0.1", 0)
