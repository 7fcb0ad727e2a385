"""Every scenario, step by step: what each answer of a broker lets go, who is live, who pauses, who is late."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.reader.logs import StagedLog, place
from tests.reader.staged import Stage, names

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.json"))
SCENARIOS = {path.stem: json.loads(path.read_text()) for path in FILES}
STAGED = {name: scenario for name, scenario in SCENARIOS.items() if "steps" in scenario}


@pytest.mark.parametrize("name", STAGED)
def test_each_step_gives_what_it_should(name: str) -> None:
    scenario = STAGED[name]
    logs = {place(key): StagedLog(place(key)) for key in scenario["log"]}
    for key, things in scenario["log"].items():
        logs[place(key)].write(things)
    stage = Stage(logs)
    stage.open(**scenario.get("reader", {}))
    given: list[str] = []
    for number, step in enumerate(scenario["steps"]):
        given += _play(stage, step, f"step {number}: {step}")
    if "result" in scenario:
        assert given == scenario["result"]
    stage.close()


def _play(stage: Stage, step: dict[str, Any], where: str) -> list[str]:
    for key, things in step.get("write", {}).items():
        stage.logs[place(key)].write(things)
    if step.get("idle"):
        stage.expire()
    if "fetch" in step:
        stage.fetch({place(key): count for key, count in step["fetch"].items()})
    rows = stage.drain() if "polls" not in step else names(stage.poll())
    if "gives" in step:
        assert rows == step["gives"], where
    _look(stage, step, where)
    return rows


def _look(stage: Stage, step: dict[str, Any], where: str) -> None:
    assert stage.reading is not None
    releasing = stage.reading.partitions.releasing
    assert releasing is not None
    progress = releasing.progress
    seen = {
        "live": releasing.is_live,
        "held": releasing.held_rows,
        "mark": releasing.mark_ms,
        "late": releasing.late_rows,
        "future": sum(one.future_rows for one in progress.values()),
        "paused": sorted(f"p{one.partition}" for one, each in progress.items() if each.is_paused),
        "released": {f"p{one.partition}": offset for one, offset in sorted(releasing.released().items())},
        "finished": stage.reading.is_finished,
    }
    for what, found in seen.items():
        if what in step:
            assert found == step[what], f"{what} at {where}"
