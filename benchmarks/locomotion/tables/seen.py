"""Terrain that the robot sees as a height map: stairs, gaps, stepping stones and rubble side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged.errors import LeggedError
from legged.ground import HeightMap
from legged.spatial import Array
from legged.table import Table

_SPACING, _WIDTH, _LENGTH, _BEGIN = 0.05, 4.0, 14.0, 1.5
"""Of the cells, width and length of a lane, and distance from the start to its first obstacle, [h]."""
_SPEEDS = (0.15, 0.2, 0.3)
"""Commanded speeds, [sqrt(g h)]; in a crawl 0.4 of them, on two feet 0.6."""
_STARTS = ((0.0, 0.0), (-0.2, 0.2), (-0.4, -0.2), (-0.6, 0.1))
"""Places of the start, along and across a lane, [h]."""
_FAR, FRICTION, STEP = 10.0, 0.6, legged.TimeStepping(2e-3)
"""Distance to the end of a trial, [h]; friction coefficient; time step."""
_DEEP, _SEED = 1.0, 3

Heights = Callable[[Array, Array, float, np.random.Generator], Array]
"""Function (x, y, size, random) -> heights of a lane, (nx, ny), [h]; x from the first obstacle, y from the left."""


def _stairs(x: Array, y: Array, size: float, random: np.random.Generator) -> Array:
    return size * np.clip(np.floor(x / 1.2) + 1.0, 0.0, 6.0)


def _gaps(x: Array, y: Array, size: float, random: np.random.Generator) -> Array:
    own = np.mod(x, 1.0 + size) < size
    return np.where(own & (x > 0.0) & (x < 6.0 * (1.0 + size)), -_DEEP, 0.0)


def _stones(x: Array, y: Array, size: float, random: np.random.Generator) -> Array:
    """Square stones 0.6 h wide with gaps between them, at random heights."""
    pitch = 0.6 + size
    heights = random.uniform(-0.05, 0.05, (64, 64))
    i, j = np.floor(x / pitch).astype(int), np.floor(y / pitch).astype(int)
    on = (np.mod(x, pitch) >= size) & (np.mod(y, pitch) >= 0.5 * size) & (np.mod(y, pitch) < pitch - 0.5 * size)
    own = np.where(on, heights[i % 64, j % 64], -_DEEP)
    return np.where((x > 0.0) & (x < 8.0), own, 0.0)


def _rubble(x: Array, y: Array, size: float, random: np.random.Generator) -> Array:
    """Blocks 0.5 h wide, half as long, of random heights up to the size."""
    heights = random.uniform(0.0, size, (64, 64))
    own = heights[np.floor(x / 0.5).astype(int) % 64, np.floor(y / 0.7).astype(int) % 64]
    return np.where((x > 0.0) & (x < 8.0), own, 0.0)


class _Lane(NamedTuple):
    """A lane: its heights, the size of its obstacles, the same for two feet, [h], and the gait of more feet."""

    heights: Heights
    size: float
    size_on_two: float
    gait: str = "trot"


LANES = {
    "stairs up, 0.5 h": _Lane(_stairs, 0.5, 0.15),
    "stairs down, 0.5 h": _Lane(_stairs, -0.5, -0.15),
    "gaps of 0.3 h": _Lane(_gaps, 0.3, 0.15),
    "stones, gaps of 0.2 h": _Lane(_stones, 0.2, 0.1, "crawl"),
    "rubble, 0.25 h": _Lane(_rubble, 0.25, 0.1),
}


def seen_table(walkers: list[Walker]) -> Table:
    """Return the numbers of walks over each terrain without a fall to its end."""
    lines = [(walker.name, *seen_lines(walker)) for walker in walkers]
    notes = (
        f"Walks over terrain that the controller knows as a height map with cells of {_SPACING:g} h, from",
        f"{len(_STARTS)} starts at {', '.join(f'{x:g}' for x in _SPEEDS)} sqrt(g h), that reach its end without a",
        "fall, of all. Four feet crawl over stones, at 0.4 of these speeds, and trot otherwise; two walk at 0.6 of",
        "them over obstacles of half the size and less. Stairs are 1.2 h deep; stones are 0.6 h wide, and blocks of",
        "rubble 0.5 h.",
    )
    return Table("Locomotion, terrain seen as a height map", ("robot", *LANES), tuple(lines), notes, left=1)


def lanes(walker: Walker) -> HeightMap:
    """Return the terrain of a robot, with a lane of each obstacle along x, from -2 h on."""
    h, random, parts = walker.height, np.random.default_rng(_SEED), []
    x = np.arange(-2.0 - _BEGIN, _LENGTH, _SPACING)[:, None] + 0.5 * _SPACING
    y = np.arange(0.0, _WIDTH, _SPACING)[None] + 0.5 * _SPACING
    x, y = np.broadcast_arrays(x, y)
    for lane in LANES.values():
        parts.append(lane.heights(x, y, lane.size_on_two if walker.feet == 2 else lane.size, random))
    return HeightMap(h * np.concatenate(parts, axis=1), _SPACING * h, (-2.0 * h, -0.5 * _WIDTH * h))


class Walks(NamedTuple):
    """The walks of a robot over all lanes.

    Attributes:
        law: The control law on the terrain. terrain: The terrain.
        q, v: Initial states, (B, nq) and (nv,).
        vary: Gaits and speeds, as in `legged.rollout`, without the path to the law.
        until: Duration, [s].
    """

    law: controllers.Locomotion
    terrain: HeightMap
    q: Array
    v: Array
    vary: dict[str, Array]
    until: float

    def successes(self, walker: Walker, farthest: Array) -> list[str]:
        """Return the numbers of walks to the end of each lane, by the largest distances along x, (B,), [m]."""
        succeeded = (farthest / walker.height > _FAR).reshape(len(LANES), -1)
        return [f"{row.sum()}/{len(row)}" for row in succeeded]


def walks(walker: Walker) -> Walks:
    """Return the walks of a robot over all lanes.

    Raises:
        LeggedError: It cannot walk.
    """
    h, on_two = walker.height, walker.feet == 2
    share, names = (0.6, [walker.gait] * len(LANES)) if on_two else (1.0, [lane.gait for lane in LANES.values()])
    gaits = [walker.schedule(name) for name in names for _ in _STARTS for _ in _SPEEDS]
    slow = [0.4 if name == "crawl" else share for name in names for _ in _STARTS for _ in _SPEEDS]
    terrain = lanes(walker)
    law = controllers.Locomotion(gaits[0], controllers.Command(vx=0.1), terrain=terrain)
    q, v = law.initial_state(walker.robot)
    starts = np.repeat(q[None], len(gaits), axis=0)
    starts[:, 4:6] += h * np.tile(np.repeat(_STARTS, len(_SPEEDS), axis=0), (len(LANES), 1))
    starts[:, 5] += _WIDTH * h * np.repeat(np.arange(len(LANES)), len(_STARTS) * len(_SPEEDS))
    vary = {
        "command.vx": walker.speed * np.array(slow) * np.resize(_SPEEDS, len(gaits)),
        "gait.period": np.array([gait.period for gait in gaits]),
        "gait.duty": np.array([gait.duty for gait in gaits]),
        "gait.touchdowns": np.array([gait.touchdowns for gait in gaits]),
    }
    return Walks(law, terrain, starts, v, vary, 1.2 * _FAR * h / (min(slow) * min(_SPEEDS) * walker.speed))


def seen_lines(walker: Walker) -> list[str]:
    try:
        own = walks(walker)
        runs = legged.rollout(
            walker.robot,
            own.law,
            ground=legged.Rigid(friction=FRICTION, terrain=own.terrain),
            until=own.until,
            q=own.q,
            v=own.v,
            vary={f"controller.{name}": values for name, values in own.vary.items()},
            integrator=STEP,
            sample=0.02,
            progress=False,
        )
    except LeggedError as error:
        print(f"{walker.name}, seen terrain: {error}", flush=True)
        return ["-"] * len(LANES)
    return own.successes(walker, np.fmax.reduce(runs.q[:, :, 4], axis=1))
