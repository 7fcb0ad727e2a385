"""Settings of a producer that fit each other, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from lowwater.client.config import ClientConfig
from lowwater.client.producing.rules import Rules, rules_of
from lowwater.errors import ConfigError
from lowwater.wire import compression


def rules(**settings: Any) -> Rules:
    return rules_of(ClientConfig({name.replace("_", "."): value for name, value in settings.items()}))


def test_rows_are_durable_and_written_once_unless_something_else_is_said() -> None:
    usual = rules()
    assert (usual.acks, usual.is_idempotent, usual.in_flight_max, usual.codec) == (-1, True, 5, compression.NONE)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_without_all_acks_rows_may_be_written_twice(acks: str) -> None:
    assert not rules(acks=acks).is_idempotent
    with pytest.raises(ConfigError, match="acks"):
        rules(acks=acks, enable_idempotence=True)
    with pytest.raises(ConfigError, match="acks"):
        rules(acks=acks, transactional_id="x")


def test_brokers_remember_five_batches_so_more_are_not_on_their_way() -> None:
    assert rules(max_in_flight=20).in_flight_max == 5
    assert rules(max_in_flight=20, enable_idempotence=False).in_flight_max == 20
    assert rules(max_in_flight=1).in_flight_max == 1


def test_batches_are_no_larger_than_requests() -> None:
    assert rules(batch_size=5_000_000, max_request_size=2_000).batch_bytes == 2_000


@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("lz4", 12), ("zstd", 22)])
def test_how_hard_a_codec_tries_can_be_said(codec: str, level: int) -> None:
    assert rules(compression_type=codec, compression_level=level).codec_level == level
    assert rules(compression_type=codec).codec_level is None


@pytest.mark.parametrize(("codec", "level"), [("gzip", 10), ("lz4", 0), ("zstd", 0), ("lz4", 18)])
def test_levels_that_a_codec_does_not_have_are_refused(codec: str, level: int) -> None:
    with pytest.raises(ConfigError, match="has levels"):
        rules(compression_type=codec, compression_level=level)


def test_a_level_is_nothing_to_codecs_without() -> None:
    assert rules(compression_type="snappy", compression_level=3).codec_level is None


@pytest.mark.parametrize("codec", compression.LEVELS)
def test_every_level_gives_the_same_bytes_back(codec: int) -> None:
    data = b"".join(b"%d lowwater " % (number % 50) for number in range(20_000))
    for level in compression.LEVELS[codec]:
        if level in (0, 1, 3, 9, 12, 17, 19):
            packed = compression.compress(codec, data, level)
            assert bytes(compression.decompress(codec, packed)) == data
            assert len(packed) < len(data) or level == 0
