"""Jumps: repeated jumps from all feet, in place and forward."""

from __future__ import annotations

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged.errors import LeggedError
from legged.table import Table

_RISES = ((0.3, 0.0), (0.5, 0.0), (1.0, 0.0), (0.5, 0.3))
"""Commanded rise of the center of mass, [h], and velocity forward, [sqrt(g h)]."""
_DURATION = 25.0
"""[sqrt(h / g)], duration of a trial, several jumps."""
_STEP, _SAMPLE = legged.TimeStepping(2e-3), 0.01


def jump_table(walkers: list[Walker]) -> Table:
    """Return the mean height of the jumps of each robot, or when it falls."""
    lines = [(walker.name, *_measure(walker)) for walker in walkers if walker.feet > 2]
    heads = tuple(f"{rise:g} h" + (f", {speed:g} sqrt(g h)" if speed else "") for rise, speed in _RISES)
    notes = (
        f"Robots with more than two feet jump again and again for {_DURATION:g} sqrt(h / g) with a constant command, a",
        "rise of the center of mass and a velocity forward. Mean of the largest heights over that of standing, in h,",
        "and the number of jumps.",
    )
    return Table("Locomotion, jumps", ("robot", *heads), tuple(lines), notes, left=1)


def _measure(walker: Walker) -> list[str]:
    """Return the mean rise, [h], and number of jumps of each trial."""
    robot, h = walker.robot, walker.height
    law = controllers.Locomotion(walker.gait, controllers.Command(jump=0.1 * h))
    rises, speeds = np.array(_RISES).T
    try:
        q, v = law.initial_state(robot)
        runs = legged.rollout(
            robot,
            law,
            ground=legged.Rigid(friction=0.6),
            until=_DURATION * float(np.sqrt(h / walker.gravity)),
            q=q,
            v=v,
            vary={"controller.command.jump": rises * h, "controller.command.vx": speeds * walker.speed},
            integrator=_STEP,
            sample=_SAMPLE,
            progress=False,
        )
    except LeggedError as error:
        print(f"{walker.name}, jumps: {error}", flush=True)
        return ["-"] * len(_RISES)
    cells = []
    for i in range(len(_RISES)):
        heights = np.array([legged.center_of_mass(robot, row)[2] for row in runs.q[i] if np.isfinite(row).all()]) - h
        tops = _tops(heights, 0.02 * h)
        text = f"{np.mean(tops) / h:.2f} ({len(tops)})" if tops else "0 (0)"
        cells.append(f"falls at {runs.when[i]:.1f} s" if runs.fallen[i] else text)
    return cells


def _tops(heights: np.ndarray, least: float) -> list[float]:
    """Return the largest height of each part of a motion above a least one, [m]."""
    above = np.flatnonzero(heights > least)
    parts = np.split(above, np.flatnonzero(np.diff(above) > 1) + 1) if len(above) else []
    return [float(heights[part].max()) for part in parts]
