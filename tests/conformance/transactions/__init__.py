"""What the transaction suites play on: one small face for the transactional producer of every client library."""
