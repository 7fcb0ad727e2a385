"""Queries as Spark would run them, without Spark: their batches and their end are scripted."""

import json
from dataclasses import dataclass, field


@dataclass
class FakeProgress:
    json: str


def progress(batch, rows=0, **others):
    event = {"batchId": batch, "timestamp": f"2026-01-01T00:00:{batch:02}Z", "numInputRows": rows, **others}
    return FakeProgress(json.dumps(event))


@dataclass
class FakeQuery:
    """Each look at it moves it on by one: `script` has what happens then."""

    script: list = field(default_factory=list)
    isActive: bool = True  # noqa: N815
    recentProgress: list = field(default_factory=list)  # noqa: N815
    in_batch: bool = False
    message: str = "Waiting for next trigger"
    error: Exception | None = None
    stopped_in_batch: bool | None = None

    @property
    def status(self):
        self.move()
        return {"message": self.message, "isTriggerActive": self.in_batch}

    @property
    def lastProgress(self):  # noqa: N802
        return self.recentProgress[-1] if self.recentProgress else None

    def move(self):
        if self.script:
            self.script.pop(0)(self)

    def exception(self):
        return self.error

    def stop(self):
        if self.isActive:
            self.isActive, self.stopped_in_batch = False, self.in_batch


def finishes(batch, rows=0, **others):
    def happen(query):
        query.recentProgress.append(progress(batch, rows, **others))
        query.in_batch = False

    return happen


def begins(query):
    query.in_batch = True
    query.message = "Processing new data"


def ends(query):
    query.isActive = False


def fails(text):
    def happen(query):
        query.isActive, query.error = False, RuntimeError(text)

    return happen


class Told:
    """An observer that remembers."""

    def __init__(self):
        self.events = []

    def started(self, query):
        self.events.append(("started", query))

    def progressed(self, query, event):
        self.events.append((query, event["batchId"]))

    def ended(self, query, error):
        self.events.append(("ended", query, error))
