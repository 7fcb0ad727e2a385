"""From the settings of a topic to those of its logs."""

from __future__ import annotations

from lowwater.config import BrokerConfig, TopicConfig
from lowwater.log.config import LogConfig


def log_config(broker: BrokerConfig, topic: TopicConfig) -> LogConfig:
    policy = topic.list("cleanup.policy")
    return LogConfig(
        segment_bytes=topic.int("segment.bytes"),
        segment_ms=topic.int("segment.ms"),
        index_interval_bytes=topic.int("index.interval.bytes"),
        retention_ms=topic.int("retention.ms"),
        retention_bytes=topic.int("retention.bytes"),
        compact="compact" in policy,
        delete="delete" in policy,
        max_message_bytes=topic.int("max.message.bytes"),
        log_append_time=topic.str("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=topic.int("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=topic.int("message.timestamp.after.max.ms"),
        delete_retention_ms=topic.int("delete.retention.ms"),
        min_cleanable_dirty_ratio=topic.float("min.cleanable.dirty.ratio"),
        min_compaction_lag_ms=topic.int("min.compaction.lag.ms"),
        max_compaction_lag_ms=topic.int("max.compaction.lag.ms"),
        producer_expiration_ms=broker.int("producer.id.expiration.ms"),
    )
