"""Bytes recorded from Kafka's own classes, for machines without Java. golden/record.py writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conformance.golden.as_json import as_json
from tests.conformance.golden.instances import CLASSES, KAFKA_LACKS
from tests.conformance.golden.instances import messages as declared_messages
from tests.conformance.golden.record import VECTORS

from lowwater.wire.schema import decoder, encoder

BY_NAME = {cls.__name__: cls for cls in CLASSES}
RECORDED: dict[str, list[dict[str, Any]]] = {}
for vector in json.loads(VECTORS.read_text()):
    RECORDED.setdefault(vector["name"], []).append(vector)


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_bytes_are_read_and_written(name: str) -> None:
    cls = BY_NAME[name]
    for each in RECORDED[name]:
        version, data = each["version"], bytes.fromhex(each["hex"])
        message = decoder(cls, version)(memoryview(data))
        assert as_json(message, version, with_records=True) == each["json"]
        assert encoder(cls, version)(message) == data


def test_every_message_and_version_was_recorded() -> None:
    recorded = {(name, each["version"]) for name, vectors in RECORDED.items() for each in vectors}
    assert recorded == {(cls.__name__, version) for cls, version in declared_messages()} - KAFKA_LACKS
    assert len(RECORDED) == len(BY_NAME)
