"""Whether the times by which batches are cut are those of events."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from lowwater.client.admin.configs import describe_configs
from lowwater.client.errors import ClientError
from lowwater.spark.driver_client import DriverClient

LOG = logging.getLogger("lowwater.spark")
_SETTING = "message.timestamp.type"
_APPEND = "LogAppendTime"


def warn_of_types(client: DriverClient, topics: Collection[str]) -> None:
    """Who may not see the settings of topics is told nothing."""
    try:
        described = client.run(describe_configs(client.cluster, sorted(topics), [_SETTING]))
    except ClientError as error:
        LOG.info("whether the times of records are those of events cannot be found out: %s", error)
        return
    warning = problem({one.name: found[_SETTING].value or "" for one, found in described.items() if _SETTING in found})
    if warning is not None:
        LOG.warning("%s", warning)


def problem(types: Mapping[str, str]) -> str | None:
    """By topic, its `message.timestamp.type`; what has to be said about them."""
    appended = sorted(topic for topic, each in types.items() if each == _APPEND)
    if not appended:
        return None
    others = sorted(types.keys() - appended)
    what = f"{', '.join(appended)}: records have the time at which the broker got them ({_APPEND})"
    if others:
        return (
            f"{what}, and those of {', '.join(others)} the time that their producers gave them: cut puts rows into one "
            "batch that did not happen at the same time"
        )
    return f"{what}: cut aligns by that, not by when things happened; a watermark over another column may drop rows"
