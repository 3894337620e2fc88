"""Stops: the time from a zero command to rest, over phases of the cycle and velocities before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import legged
from benchmarks.locomotion.tables.in_mujoco import FRICTION
from benchmarks.locomotion.walkers import Walker
from legged.spatial import Array
from legged.table import Table

PHASES = 8
COMMANDS = (
    (0.175, 0.0, 0.0),
    (0.35, 0.0, 0.0),
    (0.58, 0.0, 0.0),
    (-0.23, 0.0, 0.0),
    (0.0, 0.15, 0.0),
    (0.0, 0.3, 0.0),
    (0.0, 0.0, 0.2),
    (0.2, 0.1, 0.15),
)
"""Velocities before the stop in units of sqrt(g h) and sqrt(g / h); for two feet a quarter and a half of these."""
_STEP, _SAMPLE = 2e-3, 5  # [s]; time steps between two samples
_WALK, _LIMIT, _SOON = 2.0, 4.0, 1.6  # [s]: time before the earliest stop, longest time to rest, and a short one
_STILL, _STILL_JOINTS = 0.02, 0.1  # [m/s], [rad/s] or [m/s]: velocities at rest


def stop_table(walkers: list[Walker]) -> Table:
    """Return times from the zero command to rest."""
    lines = []
    for walker in walkers:
        times = stop_times(walker)
        soon, late = int(np.sum(times <= _SOON)), int(np.sum(times > _LIMIT - _SAMPLE * _STEP))
        lines.append((walker.name, f"{soon}/{len(times)}", f"{np.median(times):.2f}", f"{times.max():.2f}", str(late)))
    heads = ("robot", f"at rest after {_SOON:g} s", "median, s", "last, s", f"not within {_LIMIT:g} s")
    notes = (
        f"Trots, or walks, of {_WALK:g} s at {len(COMMANDS)} velocities, then a zero command in {PHASES} phases.",
        f"At rest: base below {_STILL:g} m/s and joints below {_STILL_JOINTS:g} rad/s from then on; inf is a fall.",
    )
    return Table("Locomotion, stops", heads, tuple(lines), notes, left=1)


def stop_times(walker: Walker) -> Array:
    """Return the time from a zero command to rest in each case, (n,), [s]; infinite after a fall."""
    law = replace(walker.law(walker.gait), command=None)
    q, v = law.initial_state(walker.robot)
    ground, steps = legged.Rigid(friction=FRICTION), legged.TimeStepping(_STEP)
    sim = legged.Simulation(walker.robot, law, ground=ground, q=q, v=v, integrator=steps)
    eighth = round(walker.schedule(walker.gait).period / PHASES / _STEP)
    forward, turning = (0.25, 0.5) if walker.feet == 2 else (1.0, 1.0)
    units = np.array([forward * walker.speed, forward * walker.speed, turning * walker.turning])
    times = []
    for command in COMMANDS:
        wanted = np.array([*(units * command), 0.0, 0.0])
        sim.reset(q, v)
        sim.step(wanted, n=round(_WALK / _STEP))
        for _ in range(PHASES):
            walking = sim.state
            times.append(np.inf if sim.fallen else _time_to_rest(sim, walker.robot.base.nv))
            sim.state = walking
            sim.step(wanted, n=eighth)
    return np.array(times)


def _time_to_rest(sim: legged.Simulation, base: int) -> float:
    start, last = float(sim.t), 0.0
    while sim.t - start < _LIMIT - 0.5 * _STEP:
        sim.step(np.zeros(5), n=_SAMPLE)
        if sim.fallen:
            return float("inf")
        if np.linalg.norm(sim.v[3:base]) > _STILL or np.abs(sim.v[base:]).max() > _STILL_JOINTS:
            last = float(sim.t) - start
    return last
