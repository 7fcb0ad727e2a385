"""Measure several subjects in turns, A B A B, so that the machine's mood touches all of them alike."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Sample = Mapping[str, float]
"""The figures of one round of one subject, by name."""


@dataclass
class Measured:
    """All rounds of one scenario: subject name -> samples, in the order they were taken."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)

    def median(self, subject: str, figure: str) -> float:
        return statistics.median(sample[figure] for sample in self.samples[subject])

    def ratios(self, ours: str, peer: str, figure: str) -> list[float]:
        """Ours over the peer's, round by round: what both met in a round cancels out."""
        pairs = zip(self.samples[ours], self.samples[peer], strict=True)
        return [mine[figure] / its[figure] for mine, its in pairs if its[figure]]

    def ratio(self, ours: str, peer: str, figure: str) -> float:
        return statistics.median(self.ratios(ours, peer, figure) or [float("nan")])


def interleave(subjects: Mapping[str, Callable[[], Sample]], rounds: int) -> Measured:
    """`rounds` rounds of every subject; odd rounds run backwards, so that nobody is always first."""
    measured = Measured({name: [] for name in subjects})
    for number in range(rounds):
        order = list(subjects.items())
        for name, measure in reversed(order) if number % 2 else order:
            measured.samples[name].append(measure())
    return measured
