"""kafkajs, in one node process that runs kafkajs_driver.js.

Producer and admin are kafkajs's public ones. Its public consumer reads only as a member of a group; the group suites
have it so (groups/hosts/kafkajs.js). Reading without a group uses the classes underneath, Cluster and Broker: kafkajs's
own Metadata, ListOffsets and Fetch requests, record decoding and codecs.
"""

from __future__ import annotations

import os
from pathlib import Path

from peers import places
from tests.conformance.clients.base import Can
from tests.conformance.clients.lines import LineDriver

SOURCE = Path(__file__).resolve().parent / "kafkajs_driver.js"


class KafkaJs(LineDriver):
    """kafkajs decodes headers to a map (a repeated name becomes a list), and its only config change is the old call."""

    name = "kafkajs"
    peer = "kafkajs"
    can = frozenset(
        {
            Can.REPORT_OFFSETS,
            Can.STAMP,
            Can.HEADERS,
            Can.NULL_VALUES,
            Can.EMPTY_KEYS,
            Can.BARE_EMPTY_VALUES,
            Can.TELL_TIMESTAMP_TYPE,
            Can.IDEMPOTENCE,
            Can.OFFSETS_FOR_TIMES,
            Can.CREATE_TOPICS,
            Can.DELETE_TOPICS,
            Can.LIST_TOPICS,
            Can.DESCRIBE_TOPICS,
            Can.CREATE_PARTITIONS,
            Can.DESCRIBE_CONFIGS,
            Can.ALTER_CONFIGS,
            Can.DELETE_RECORDS,
            Can.DESCRIBE_CLUSTER,
        }
    )

    def command(self) -> list[str]:
        return ["node", str(SOURCE)]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "NODE_PATH": str(places.KAFKAJS / "node_modules"), "KAFKAJS_NO_PARTITIONER_WARNING": "1"}
