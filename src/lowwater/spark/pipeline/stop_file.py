"""How the sources of a running pipeline are told to begin no new batch: by a file that is there or not.

Spark cannot stop a query between two batches: `stop` cuts off what runs, and between a look at the query and the stop a
batch may begin. But no batch begins that a source does not plan, and the sources are ours.
"""

from __future__ import annotations

import os
import tempfile
import uuid


class StopFile:
    """Has a name from the beginning, and is there once the pipeline is to stop."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def of(cls, session: object) -> StopFile | None:
        """None over Spark Connect: sources plan at the server, which may not see files of this machine."""
        if type(session).__module__.startswith("pyspark.sql.connect"):
            return None
        return cls(os.path.join(tempfile.gettempdir(), f"lowwater-stop-{uuid.uuid4().hex}"))

    def make(self) -> None:
        with open(self.name, "wb"):
            pass

    def remove(self) -> None:
        if os.path.exists(self.name):
            os.remove(self.name)
