"""`order=timestamp`: the tasks of a batch are slices of time, each merged by the worker that reads it."""
