"""Histories of a group, each with the exact lag, time lag, status and recommendation that it leads to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.lag.played import partition, played

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.json"))
ASKED_FOR = {
    "idle", "catching_up", "falling_behind", "stopped", "stalled", "rewound", "recreated_topic", "aged_out_offsets",
    "never_committed", "transaction_markers_at_the_tail", "one_dead_partition",
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_history_is_judged_as_it_says(path: Path) -> None:
    scenario: dict[str, Any] = json.loads(path.read_text())
    expected = scenario["expected"]
    found = played(scenario)
    document = found.document()
    wanted = {name: value for name, value in expected.items() if name not in ("partitions", "is_wrong")}
    assert {name: document[name] for name in wanted} == wanted
    by_partition = {partition(f"{one['topic']}/{one['partition']}"): one for one in document["partitions"]}
    for name, some in expected["partitions"].items():
        one = by_partition[partition(name)]
        assert {key: one[key] for key in some} == some, name
    if "is_wrong" in expected:
        assert found.is_wrong is expected["is_wrong"]


def test_every_history_that_matters_is_there() -> None:
    assert {path.stem for path in FILES} >= ASKED_FOR


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_lag_is_never_negative_and_never_nan(path: Path) -> None:
    text = json.dumps(played(json.loads(path.read_text())).document())
    assert "NaN" not in text
    assert "Infinity" not in text
    for one in json.loads(text)["partitions"]:
        assert one["lag"] is None or one["lag"] >= 0
        assert one["time_lag_ms"] is None or one["time_lag_ms"] >= 0
