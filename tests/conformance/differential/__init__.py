"""Random requests, sent to both brokers, must be answered alike."""
