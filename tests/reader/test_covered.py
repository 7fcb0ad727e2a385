"""Every promise about reading has a scenario that is named after it."""

from __future__ import annotations

import json
from pathlib import Path

SCENARIOS = Path(__file__).parent / "scenarios"
EDGES = {f"edge {number}" for number in range(1, 19)}
ORDERED = {"S4-3", "S4-4", "S4-5", "S4-6", "S4-7", "S4-10"}
OFFSETS = {"S0-2", "S0-3", "S0-5", "S0-6", "S0-9", "S0-10", "S0-12", "S0-17"}
# S3-1 is seen by the broker in test_through_the_reader, S3-2 counted in test_requests, S3-11 is a tool for tests.
STARTS = {"S3-3", "S3-4", "S3-5", "S3-6", "S3-7", "S3-8", "S3-9", "S3-10"}


def test_every_promise_has_a_scenario() -> None:
    covered = {one for path in SCENARIOS.glob("*.json") for one in json.loads(path.read_text())["covers"]}
    assert covered == EDGES | ORDERED | OFFSETS | STARTS
