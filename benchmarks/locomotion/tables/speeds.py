"""Largest speeds: the largest commanded velocity in each gait and direction up to which a robot succeeds."""

from __future__ import annotations

from itertools import takewhile

import numpy as np

from benchmarks.locomotion.loops import DURATION, simulate_locomotion
from benchmarks.locomotion.outcomes import OURS, outcomes
from benchmarks.locomotion.trials import GAITS, PLAIN, Trial
from benchmarks.locomotion.walkers import Walker
from legged.table import Table

_STEP, _COUNT = 0.1, 21
"""Distance of two speeds, [sqrt(g h)] and [sqrt(g / h)], half of it for two feet; number of speeds."""
_FORWARD = (1.0, 0.0, 0.0)
_OTHERS = {"backward": (-1.0, 0.0, 0.0), "sideways": (0.0, 0.5, 0.0), "turning": (0.0, 0.0, 1.0)}
"""Directions in the usual gait; sideways in half of the steps."""


def speed_table(walkers: list[Walker]) -> Table:
    """Return the largest velocities before the first trial that fails."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers]
    notes = (
        f"Largest speed, sqrt(g h), and yaw rate, sqrt(g / h), before the first failure, in steps of {_STEP:g},",
        f"sideways and for two feet half; trials of {DURATION[PLAIN]:g} s on level ground. Gaits forward, other",
        "directions in a trot or, on two feet, in a walk. -: not possible; 0: the slowest trial fails.",
    )
    return Table("Locomotion, largest speeds", ("robot", *GAITS, *_OTHERS), tuple(lines), notes, left=1)


def _measure(walker: Walker) -> list[str]:
    """Return the largest speeds in each gait forward, then in the other directions."""
    gaits = {name: (name, _FORWARD) for name in (("walk",) if walker.feet == 2 else GAITS)}
    ways = gaits | {name: (walker.gait, way) for name, way in _OTHERS.items() if walker.follows(way)}
    step = 0.5 * _STEP if walker.feet == 2 else _STEP
    speeds = step * np.arange(1, _COUNT + 1)
    batch = [
        Trial(name, (float(x * way[0]), float(x * way[1]), float(x * way[2])), gait=gait)
        for name, (gait, way) in ways.items()
        for x in speeds
    ]
    results = outcomes(walker, OURS, simulate_locomotion(walker, batch))
    largest: dict[str, float] = {}
    for name, (_, way) in ways.items():
        own = [x for x in results if x.trial.row == name]
        largest[name] = step * float(np.abs(way).max()) * len(list(takewhile(lambda x: x.succeeded, own)))
    return [f"{largest[name]:g}" if name in largest else "-" for name in (*GAITS, *_OTHERS)]
