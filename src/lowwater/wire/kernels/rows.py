"""A row while it is held: one cache line, so that rows of many partitions can be picked without reading eleven."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

ROW = np.dtype(
    [
        ("key", np.int64),  # by which it is ordered
        ("offset", np.int64),
        ("timestamp", np.int64),
        ("key_at", np.int64),  # the address of its record's key; what follows is counted from there
        ("key_size", np.int32),
        ("value_from", np.int32),
        ("value_size", np.int32),
        ("headers_from", np.int32),
        ("header_count", np.int32),
        ("size", np.int32),  # from the key to the end of the record
        ("tag", np.int32),  # its partition
        ("timestamp_type", np.int32),
    ],
    align=True,
)
ROW_BYTES = ROW.itemsize
KEY, OFFSET, SIZE, TAG = (ROW.fields[name][1] for name in ("key", "offset", "size", "tag"))  # type: ignore[index]
ROWS = numba.from_dtype(ROW)[::1]
