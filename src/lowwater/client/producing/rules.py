"""What the settings of a producer come to, once those that contradict each other are refused."""

from __future__ import annotations

from dataclasses import dataclass

from lowwater.client.config import ClientConfig
from lowwater.errors import ConfigError
from lowwater.wire.compression import CODEC_NAMES, LEVELS

# Brokers remember so many batches of each producer; a retry of an older one could not be told from a new one.
IDEMPOTENT_IN_FLIGHT_MAX = 5
ALL = -1


@dataclass(frozen=True, slots=True)
class Rules:
    """`batch_bytes` is before compression, `record_bytes` as sent."""

    acks: int
    is_idempotent: bool
    transactional_id: str | None
    transaction_ms: int
    in_flight_max: int
    batch_bytes: int
    record_bytes: int
    buffer_bytes: int
    codec: int
    codec_level: int | None
    linger_ms: float
    delivery_ms: int
    request_ms: int
    retries: int
    partitioner: str


def rules_of(config: ClientConfig) -> Rules:
    """ConfigError for settings that contradict each other."""
    acks = ALL if config.str("acks") == "all" else int(config.str("acks"))
    transactional_id = config.maybe_str("transactional.id")
    is_idempotent = _is_idempotent(config, acks, transactional_id)
    in_flight_max = config.int("max.in.flight.requests.per.connection")
    return Rules(
        acks=acks,
        is_idempotent=is_idempotent,
        transactional_id=transactional_id,
        transaction_ms=config.int("transaction.timeout.ms"),
        in_flight_max=min(in_flight_max, IDEMPOTENT_IN_FLIGHT_MAX) if is_idempotent else in_flight_max,
        batch_bytes=min(config.int("batch.size"), config.int("max.request.size")),
        record_bytes=config.int("max.request.size"),
        buffer_bytes=config.int("buffer.memory"),
        codec=CODEC_NAMES.index(config.str("compression.type")),
        codec_level=_level(config),
        linger_ms=config.float("linger.ms"),
        delivery_ms=config.int("delivery.timeout.ms"),
        request_ms=config.int("request.timeout.ms"),
        retries=config.int("retries"),
        partitioner=config.str("partitioner"),
    )


def _level(config: ClientConfig) -> int | None:
    """None: as the codec sees fit."""
    level, name = config.int("compression.level"), config.str("compression.type")
    allowed = LEVELS.get(CODEC_NAMES.index(name))
    if level == -1 or allowed is None:
        return None
    if level not in allowed:
        raise ConfigError(f"compression.level={level}: {name} has levels {allowed[0]} to {allowed[-1]}")
    return level


def _is_idempotent(config: ClientConfig, acks: int, transactional_id: str | None) -> bool:
    """On unless acks say otherwise; said to be on, or needed by transactions, it has to be possible."""
    wanted = config.bool("enable.idempotence")
    if transactional_id is not None and not wanted:
        raise ConfigError("transactional.id needs enable.idempotence, which is off")
    is_needed = transactional_id is not None or config.is_given("enable.idempotence")
    if wanted and acks != ALL and is_needed:
        raise ConfigError(f"acks={acks} cannot be idempotent: acks=all, or enable.idempotence=false")
    return wanted and acks == ALL
