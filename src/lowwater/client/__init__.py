"""Talks to brokers over Kafka's protocol: ours, or any Kafka since 2.8."""
