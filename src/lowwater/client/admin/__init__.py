"""Looking after a cluster: topics, settings, records, offsets and groups.

with Admin("localhost:9092") as admin:
    admin.create_topics([NewTopic("orders", partitions=3)]).checked()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowwater.client.admin.aio import AsyncAdmin as AsyncAdmin
    from lowwater.client.admin.blocking import Admin as Admin
    from lowwater.client.admin.configs import Append as Append
    from lowwater.client.admin.configs import Of as Of
    from lowwater.client.admin.configs import Resource as Resource
    from lowwater.client.admin.configs import Subtract as Subtract
    from lowwater.client.admin.records import ALL as ALL
    from lowwater.client.admin.topic_changes import NewTopic as NewTopic

# Loaded when they are used: the command line needs neither asyncio nor most of the rest.
_WHERE = {
    "ALL": "records",
    "Admin": "blocking",
    "Append": "configs",
    "AsyncAdmin": "aio",
    "NewTopic": "topic_changes",
    "Of": "configs",
    "Resource": "configs",
    "Subtract": "configs",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_WHERE)
