"""Largest speeds: those up to which a robot succeeds, and those that it holds at commands beyond its ability."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

import numpy as np

from benchmarks.locomotion.loops import DURATION, locomotion_setup, simulate, simulate_locomotion
from benchmarks.locomotion.outcomes import OURS, outcomes
from benchmarks.locomotion.trials import GAITS, PLAIN, Trial
from benchmarks.locomotion.walkers import Walker
from legged.table import Table

_STEP, _COUNT = 0.1, 21
"""Distance of two speeds, [sqrt(g h)] and [sqrt(g / h)], half of it for two feet; number of speeds."""
_FORWARD = (1.0, 0.0, 0.0)
_OTHERS = {"backward": (-1.0, 0.0, 0.0), "sideways": (0.0, 0.5, 0.0), "turning": (0.0, 0.0, 1.0)}
"""Directions in the usual gait; sideways in half of the steps."""
_BEYOND = {
    "forward": (1.0, 0.0, 0.0),
    "backward": (-1.0, 0.0, 0.0),
    "sideways": (0.0, 1.0, 0.0),
    "turning": (0.0, 0.0, 1.0),
    "curve": (1.0, 0.0, 0.5),
    "oblique": (0.7, 0.7, 0.0),
    "all": (0.6, -0.5, 0.5),
}
"""Directions of commands beyond the ability of robots."""
_MULTIPLES, _LONG = (0.6, 1.0, 1.4, 2.0), 12.0
"""Multiples of them, and duration of a trial, [s]."""
_GAITS, _SPEEDS = ("walk", "pace", "bound", "gallop", "pronk"), (0.3, 0.6, 0.9, 1.2, 1.6, 2.0)
"""Gaits other than the trot, and commanded speeds forward, [sqrt(g h)]."""


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


def beyond_table(walkers: list[Walker]) -> Table:
    """Return the velocities that robots hold at commands beyond their ability."""
    lines = [(walker.name, *_held(walker)) for walker in walkers]
    notes = (
        f"Mean velocity in the direction of the command in the last 40 % of {_LONG:g} s on level ground, as",
        f"a multiple of {', '.join(f'{name} {way}' for name, way in _BEYOND.items())},",
        f"sqrt(g h) and sqrt(g / h), at commands of {_MULTIPLES[-1]:g} times these. Falls at {_MULTIPLES} times them.",
    )
    return Table("Locomotion, commands beyond ability", ("robot", *_BEYOND, "falls"), tuple(lines), notes, left=1)


def _held(walker: Walker) -> list[str]:
    """Return the multiple of each direction that a robot holds at the largest command, and the number of falls."""
    ways = {name: np.array(way) for name, way in _BEYOND.items() if walker.follows(way)}
    batch = [
        Trial(name, (float(x * way[0]), float(x * way[1]), float(x * way[2])))
        for name, way in ways.items()
        for x in _MULTIPLES
    ]
    results = outcomes(walker, OURS, simulate(replace(locomotion_setup(walker, batch), until=_LONG), walker, batch))
    cells = dict.fromkeys(_BEYOND, "-")
    for name, way in ways.items():
        last = [x for x in results if x.trial.row == name][-1]
        cells[name] = f"{np.array(last.reached) @ way / (way @ way):.2f}" if last.survived else "falls"
    return [*cells.values(), f"{sum(not x.survived for x in results)}/{len(results)}"]


def beyond_in_gaits_table(walkers: list[Walker]) -> Table:
    """Return the speeds that robots hold in other gaits than the trot at commands beyond their ability."""
    lines = [(walker.name, *_held_in_gaits(walker)) for walker in walkers if walker.feet > 2]
    notes = (
        f"Mean speed forward in the last 40 % of {_LONG:g} s on level ground, sqrt(g h), at commanded {_SPEEDS[-1]:g}.",
        f"Falls: trials with a fall, of all gaits and the commands {', '.join(f'{x:g}' for x in _SPEEDS)} sqrt(g h).",
    )
    heads = ("robot", *_GAITS, "falls")
    return Table("Locomotion, commands beyond ability in gaits", heads, tuple(lines), notes, left=1)


def _held_in_gaits(walker: Walker) -> list[str]:
    """Return the speed that a robot holds in each gait at the largest command, and the number of falls."""
    batch = [Trial(gait, (x, 0.0, 0.0), gait=gait) for gait in _GAITS for x in _SPEEDS]
    results = outcomes(walker, OURS, simulate(replace(locomotion_setup(walker, batch), until=_LONG), walker, batch))
    last = [[x for x in results if x.trial.row == gait][-1] for gait in _GAITS]
    cells = [f"{x.reached[0]:.2f}" if x.survived else "falls" for x in last]
    return [*cells, f"{sum(not x.survived for x in results)}/{len(results)}"]
