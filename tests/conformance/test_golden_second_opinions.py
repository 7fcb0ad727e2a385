"""What two Python implementations make of our bytes. kafka-python also knows the oldest form of ListOffsets."""

from __future__ import annotations

import importlib
import io
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.golden.instances import REQUESTS_AND_RESPONSES, Style, instance, messages

from lowwater.wire.schema import decoder, encoder, fields_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # kafka-python's way to load its schemas
STYLES = (Style.FULL, Style.MIXED, Style.NULLS, Style.EMPTY)
KAFKA_PYTHON_LACKS = ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe")
KAFKA_PYTHON_FOLDERS = ("admin", "consumer", "metadata", "producer")
TIMES = ("log_append_time_ms", "retention_time_ms", "transaction_start_time_ms")
# Reads bytes with another implementation: the object it made, and the bytes it writes for that.
Opinion = Callable[[type[Any], int, bytes], tuple[Any, bytes]]


def kio(cls: type[Any], version: int, data: bytes) -> tuple[Any, bytes]:
    from kio.serial import entity_reader, entity_writer

    api, kind = re.fullmatch(r"(\w+)(Request|Response)", cls.__name__).groups()  # type: ignore[union-attr]
    folder = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api).lower()
    theirs = getattr(importlib.import_module(f"kio.schema.{folder}.v{version}.{kind.lower()}"), cls.__name__)
    read, size = entity_reader(theirs)(data, 0)
    assert size == len(data)
    written = io.BytesIO()
    entity_writer(theirs)(written, read)
    return read, written.getvalue()


def kafka_python(cls: type[Any], version: int, data: bytes) -> tuple[Any, bytes]:
    folders = [
        importlib.import_module(f"kafka.protocol.{name}") for name in ("admin", "consumer", "metadata", "producer")
    ]
    theirs = next(getattr(folder, cls.__name__) for folder in folders if hasattr(folder, cls.__name__))
    read = theirs.decode(data, version=version)
    read._header = None  # left unset by its decoder, wanted by its encoder
    return read, read.encode(version=version)


def tame(message: Any) -> Any:
    """Without values that mean something to these libraries: errors they would raise, times outside a calendar."""
    for field in fields_of(type(message)):
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            setattr(message, field.name, 0)
        elif field.name in TIMES and value != field.default:
            setattr(message, field.name, 1_700_000_000_000)
        elif field.struct is not None and value is not None:
            for each in value if isinstance(value, list) else [value]:
                tame(each)
    return message


def compared(ours: Any, theirs: Any, version: int) -> int:
    """How many plain values were found under the same name, all of them equal."""
    count = 0
    for field in fields_of(type(ours)):
        if not field.present(version) or not hasattr(theirs, field.name):
            continue
        pairs = [(getattr(ours, field.name), getattr(theirs, field.name))]
        if isinstance(pairs[0][0], list):
            pairs = list(zip(*pairs[0], strict=True))
        for one, other in pairs:
            if field.struct is not None and one is not None:
                count += compared(one, other, version)
            elif type(one) in (int, str, bool, float) and isinstance(other, type(one)):
                assert one == other, field.name
                count += 1
    return count


@pytest.mark.parametrize("cls", REQUESTS_AND_RESPONSES)
@pytest.mark.parametrize(
    "opinion",
    [
        pytest.param(kio, marks=pytest.mark.peer("kio")),
        pytest.param(kafka_python, marks=pytest.mark.peer("kafka_python")),
    ],
)
def test_another_implementation_reads_and_writes_the_same(opinion: Opinion, cls: type[Any]) -> None:
    if opinion is kafka_python and cls.__name__.startswith(KAFKA_PYTHON_LACKS):
        pytest.skip("kafka-python does not know the newer consumer protocol")
    rng = random.Random(cls.__name__)
    agreed = 0
    for each, version in messages():
        if each is not cls or (opinion is kio and cls.__name__.startswith("ListOffsets") and version == 0):
            continue
        for style in STYLES:
            sample = tame(instance(cls, version, style, rng))
            ours = encoder(cls, version)(sample)
            read, written = opinion(cls, version, ours)
            assert written == ours, f"v{version} {style.name}"
            assert decoder(cls, version)(memoryview(written)) == sample
            agreed += compared(sample, read, version)
    assert agreed > 0 or not fields_of(cls)
