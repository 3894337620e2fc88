"""Endurance: long walks at one speed with a push in a random direction every few seconds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import controllers
import legged
from benchmarks.locomotion.tables.in_mujoco import FRICTION
from benchmarks.locomotion.walkers import Walker
from legged.table import Table

_STEP, _SAMPLE, _UNTIL = 2e-3, 0.02, 60.0  # [s]
_FIRST, _EVERY = 2.0, 3.0  # [s], time of the earliest push and between two pushes
_MEMBERS, _SEED = 8, 0
_SPEED, _PUSH = 0.3, 0.29  # [sqrt(g h)]; for two feet:
_SPEED_ON_TWO, _PUSH_ON_TWO = 0.2, 0.12


def endurance_table(walkers: list[Walker]) -> Table:
    """Return how many walks last to the end, and the number of pushes survived."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers]
    heads = ("robot", "speed, m/s", "pushes, m/s", "walks without a fall", "pushes survived")
    notes = (
        f"{_MEMBERS} walks of {_UNTIL:g} s on level ground. Pushes of 0.1 s in seeded directions change the velocity;",
        f"the first is at {_FIRST:g} s, then one follows every {_EVERY:g} s, each up to 0.9 s later.",
    )
    return Table("Locomotion, endurance", heads, tuple(lines), notes, left=1)


def _measure(walker: Walker) -> tuple[str, str, str, str]:
    share, size = (_SPEED_ON_TWO, _PUSH_ON_TWO) if walker.feet == 2 else (_SPEED, _PUSH)
    speed, change = share * walker.speed, size * walker.speed
    law = replace(walker.law(walker.gait), command=controllers.Command(vx=speed))
    q, v = law.initial_state(walker.robot)
    rng, count = np.random.default_rng(_SEED), int((_UNTIL - _FIRST) / _EVERY)
    angles = rng.uniform(0.0, 2.0 * np.pi, (count, _MEMBERS))
    times = _FIRST + _EVERY * np.arange(count)[:, None] + rng.uniform(0.0, 0.9, (count, _MEMBERS))
    impulses = walker.robot.mass * change * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=2)
    vary = {f"pushes.{k}.impulse": impulses[k] for k in range(count)}
    runs = legged.rollout(
        walker.robot,
        law,
        ground=legged.Rigid(friction=FRICTION),
        until=_UNTIL,
        q=q,
        v=v,
        vary=vary | {f"pushes.{k}.at": times[k] for k in range(count)},
        pushes=[legged.Push(walker.trunk, (0.0, 0.0, 0.0), at=float(row[0])) for row in times],
        integrator=legged.TimeStepping(_STEP),
        sample=_SAMPLE,
        progress=False,
    )
    ends = np.where(runs.fallen, runs.when, _UNTIL)
    given, falls = int(np.sum(times < ends)), int(np.sum(runs.fallen))
    return f"{speed:.2f}", f"{change:.2f}", f"{_MEMBERS - falls}/{_MEMBERS}", f"{given - falls}/{given}"
