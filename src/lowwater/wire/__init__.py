"""Bytes to messages and back: frames, requests and responses, record batches. No input or output of its own."""
