"""Every scenario through a real reader on a real broker: ours, or with --against=kafka Apache Kafka."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.under_test import UnderTest
from tests.reader.acting import Play
from tests.reader.logs import named, place, times_of

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.json"))
SCENARIOS: dict[str, Any] = {path.stem: json.loads(path.read_text()) for path in FILES}
ACTED = [name for name, scenario in SCENARIOS.items() if "acts" in scenario]
WHOLE = [name for name, scenario in SCENARIOS.items() if "steps" in scenario and "empty" not in str(scenario["log"])]
# So small that each answer brings one batch of one partition: the order in which they come is as bad as it can be.
ONE_BY_ONE = {"fetch.max.bytes": 1, "max.partition.fetch.bytes": 1}


@pytest.mark.parametrize("name", ACTED)
def test_every_act_is_as_it_says(name: str, broker: UnderTest) -> None:
    scenario = SCENARIOS[name]
    if "only" in scenario and scenario["only"] != broker.name:
        pytest.skip(f"meaningful only with --against={scenario['only']}")
    play = Play(broker, name)
    try:
        for act in scenario["acts"]:
            play.act(act)
    finally:
        play.close()


@pytest.mark.parametrize("config", [{}, ONE_BY_ONE], ids=["at_once", "one_by_one"])
@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_log_comes_in_order(name: str, config: dict[str, int], broker: UnderTest) -> None:
    """However the answers come: where the scenario has one result, that; else every row once, and late ones counted."""
    scenario = SCENARIOS[name]
    play = Play(broker, name)
    topics = sorted({key.rpartition("/")[0] or "cars" for key in scenario["log"]})
    try:
        for topic in topics:
            mine = [key for key in scenario["log"] if (key.rpartition("/")[0] or "cars") == topic]
            play.act({"create": {topic: len(mine)}})
        play.act({"write": scenario["log"]})
        given = {key.replace("cutoff_ms", "cutoff"): value for key, value in scenario.get("reader", {}).items()}
        play.act({"open": {"topics": topics, "config": config, **given}})
        rows, late = play.all_rows()
        _check(scenario, rows, late)
    finally:
        play.close()


def _check(scenario: dict[str, Any], rows: list[str], late: int) -> None:
    options = scenario.get("reader", {})
    if "result" in scenario:
        assert rows == scenario["result"]
    elif options.get("start") != "latest":
        logs = {key: [time for thing in log for time in times_of(thing)] for key, log in scenario["log"].items()}
        assert sorted(rows) == sorted(named(place(key), time) for key, times in logs.items() for time in times)
    if options.get("order", "timestamp") == "timestamp" and not any(row.endswith("-") for row in rows):
        times = [int(row.rpartition("@")[2]) for row in rows]
        assert late == sum(time < max(times[:at], default=0) for at, time in enumerate(times))
