"""Records to columns and back, without a Python object per record: numba compiles it, or finds it in its cache.

`walking` finds the batches of an answer, `scanning` checks and finds every field of their records, `ordering` chooses
which rows go next, `gathering` copies them into Arrow's buffers, `encoding` is the way back. Places are addresses: rows
of many buffers are handled in one go, and whoever holds the places holds the buffers.
"""
