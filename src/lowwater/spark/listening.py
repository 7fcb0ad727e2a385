"""Progress of any streaming query, by a listener: for jobs that are not pipelines.

listener = listen(spark, lambda progress: print(progress.query, progress.behind))
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lowwater.spark.ages import Ages, Aging
from lowwater.spark.course import Course, prometheus
from lowwater.spark.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener


class Courses:
    """Queries by name, and their sum in Prometheus' text. May be asked by any thread.

    `settings`, those of a client by Kafka's names, say where brokers are: then queries are behind in seconds as well.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        self._courses: dict[str, Course] = {}
        self._lock = threading.Lock()
        self._aging = Aging(lambda query: None if settings is None else Ages(settings))

    def add(self, progress: Progress) -> None:
        with self._lock:
            course = self._courses.setdefault(progress.query, Course(progress.query))
            course.add(progress)
            self._aging.note(course)

    def prometheus(self) -> str:
        with self._lock:
            return prometheus(list(self._courses.values()))

    def close(self) -> None:
        """Nobody looks any more."""
        with self._lock:
            self._aging.close()


def listen(spark: SparkSession, tell: Callable[[Progress], None]) -> StreamingQueryListener:
    """`tell` gets every micro-batch of every query of the session, until `spark.streams.removeListener` ends it."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            tell(Progress.of(json.loads(event.progress.json)))

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            pass

    listener = Listener()
    spark.streams.addListener(listener)
    return listener
