"""Consumer groups and committed offsets, without I/O: `GroupShard` decides, its driver in `broker` does."""
