"""Recovery: robots that are dropped with random orientations stand up and walk on."""

from __future__ import annotations

import warnings

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged.environments.tasks.standing_up import with_body_contacts
from legged.errors import LeggedError, SimulationWarning
from legged.table import Table

_POSES, _SEED = 12, 0
_DURATION, _DURATION_ON_TWO = 60.0, 200.0
"""[sqrt(h / g)], duration of a trial."""
_HEIGHT, _HEIGHT_ON_TWO = 2.2, 1.2
"""[base height], height of the drop: a robot with its legs to the side, or its head down, is off the ground."""
_UPRIGHT, _STANDS = 0.95, 0.8
"""Least vertical component of the upright axis of the base, and height of the base relative to that when it stands."""
_STEP = legged.TimeStepping(2e-3)


def recovery_table(walkers: list[Walker]) -> Table:
    """Return in how many trials each robot stands and walks at the end, and the time of the slowest."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers]
    notes = (
        f"Robots with contact points on trunk and knees, dropped with {_POSES} random orientations, at a commanded",
        f"0.15 sqrt(g h), {_DURATION:g} sqrt(h / g) after the drop, with two legs {_DURATION_ON_TWO:g} sqrt(h / g).",
        "Time: until the last one stood for good. Damped: robots with two legs that cannot rise.",
    )
    return Table("Locomotion, recovery from falls", ("robot", "stand and walk", "time, s"), tuple(lines), notes, left=1)


def _measure(walker: Walker) -> tuple[str, str]:
    """Return successes of all, and the time of the slowest success, [s]."""
    try:
        robot = with_body_contacts(walker.robot)
        law = controllers.Recovery(controllers.Locomotion(walker.gait, controllers.Command(vx=0.15 * walker.speed)))
        q, _ = law.initial_state(robot)
    except LeggedError as error:
        print(f"{walker.name}, recovery: {error}", flush=True)
        return "0", "-"
    on_two = walker.feet == 2
    if on_two:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", SimulationWarning)
            law.start(robot, None, q, np.zeros(robot.nv))
        damped = [str(warning.message) for warning in caught if "remains damped" in str(warning.message)]
        if damped:
            print(f"{walker.name}, recovery: {damped[0]}", flush=True)
            return "damped", "-"
    duration, drop = (_DURATION_ON_TWO, _HEIGHT_ON_TWO) if on_two else (_DURATION, _HEIGHT)
    height, unit = float(q[6]), walker.speed / walker.gravity
    rotations = np.random.default_rng(_SEED).normal(size=(_POSES, 4))
    starts = np.repeat(q[None], _POSES, axis=0)
    starts[:, :4] = rotations / np.linalg.norm(rotations, axis=1)[:, None]
    starts[:, 6] = drop * height
    runs = legged.rollout(
        robot,
        law,
        ground=legged.Rigid(friction=0.6),
        until=duration * unit,
        q=starts,
        v=np.zeros(robot.nv),
        integrator=_STEP,
        sample=0.05,
        fall=False,
    )
    upright = 1.0 - 2.0 * (runs.q[..., 1] ** 2 + runs.q[..., 2] ** 2)
    stands = (upright > _UPRIGHT) & (runs.q[..., 6] > _STANDS * height)
    succeeded = [bool(row[-1]) for row in stands]
    times = [runs.times[len(row) - int(np.argmin(row[::-1]))] for row in stands if row[-1] and not row.all()]
    return f"{sum(succeeded)} of {_POSES}", f"{max(times):.1f}" if times else "-"
