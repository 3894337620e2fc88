"""Costs of transport of gaits: the positive mechanical power over weight and speed, at each speed."""

from __future__ import annotations

import numpy as np

from benchmarks.locomotion.loops import simulate_locomotion
from benchmarks.locomotion.outcomes import OURS, outcomes
from benchmarks.locomotion.trials import Trial
from benchmarks.locomotion.walkers import Walker
from legged.table import Table

_SPEEDS = (0.03, 0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.45, 0.6, 0.9, 1.2, 1.5, 1.8)
"""[sqrt(g h)]; squares of them are Froude numbers."""
_GAITS = ("walk", "trot", "pace", "bound", "gallop")


def cost_table(walkers: list[Walker]) -> Table:
    """Return the cost of transport and largest torque of each gait and speed of robots with more than two feet."""
    lines = [line for walker in walkers if walker.feet > 2 for line in _measure(walker)]
    notes = (
        "Cost of transport at each speed, sqrt(g h), in trials of 5 s on level ground, over the last 2 s; *: the least",
        "of the robot at this speed; -: the trial fails. Torque: largest root-mean-square torque of a joint over its",
        "limit, %, if there are limits.",
    )
    heads = ("robot", "gait", *(f"{speed:g}" for speed in _SPEEDS))
    return Table("Locomotion, costs of transport of gaits", heads, tuple(lines), notes, left=2)


def _measure(walker: Walker) -> list[tuple[str, ...]]:
    trials = [Trial("costs", (speed, 0.0, 0.0), gait=gait) for gait in _GAITS for speed in _SPEEDS]
    results = outcomes(walker, OURS, simulate_locomotion(walker, trials))
    costs = np.array([x.cost_of_transport if x.succeeded else np.nan for x in results]).reshape(len(_GAITS), -1)
    torques = 100.0 * np.array([x.torque for x in results]).reshape(costs.shape)
    least = np.fmin.reduce(costs)
    lines = []
    for gait, own, shares in zip(_GAITS, costs, torques, strict=True):
        cells = [
            "-" if np.isnan(c) else f"{c:.2f}{'*' if c == best else ''}" for c, best in zip(own, least, strict=True)
        ]
        lines.append((walker.name, gait, *cells))
        if np.nanmax(shares) > 1.0:  # some files state limits far beyond what is used
            row = ["-" if np.isnan(c) else f"{share:.0f}" for c, share in zip(own, shares, strict=True)]
            lines.append((walker.name, f"{gait}, torque", *row))
    return lines
