"""Settings: one table by Kafka's dotted names, and the values that hold for a broker and for its topics."""

from lowwater.config.broker import BrokerConfig, Source, SourcedValue, unknown_setting
from lowwater.config.broker_settings import BROKER_SETTING, BROKER_SETTINGS
from lowwater.config.group_settings import GROUP_OWN_SETTINGS, GROUP_SETTING
from lowwater.config.listeners import ListenerAddress, client_listener, listener_text, parse_listener
from lowwater.config.properties import parse_properties
from lowwater.config.setting import Kind, Setting, Synonym, Update, value_text
from lowwater.config.topic import ConsumerGroupConfig, TopicConfig, check_group_settings, check_topic_settings
from lowwater.config.topic_settings import TOPIC_SETTING, TOPIC_SETTINGS

__all__ = [
    "BROKER_SETTING",
    "BROKER_SETTINGS",
    "GROUP_OWN_SETTINGS",
    "GROUP_SETTING",
    "TOPIC_SETTING",
    "TOPIC_SETTINGS",
    "BrokerConfig",
    "ConsumerGroupConfig",
    "Kind",
    "ListenerAddress",
    "Setting",
    "Source",
    "SourcedValue",
    "Synonym",
    "TopicConfig",
    "Update",
    "check_group_settings",
    "check_topic_settings",
    "client_listener",
    "listener_text",
    "parse_listener",
    "parse_properties",
    "unknown_setting",
    "value_text",
]
