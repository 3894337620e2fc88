"""Throughput of closed loops in batches beside `mujoco.rollout`, which simulates the robot without a controller."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

import mujoco
import mujoco.rollout
import numpy as np

import controllers
import legged
from benchmarks.locomotion.tables.in_mujoco import FRICTION
from benchmarks.locomotion.walkers import Walker
from legged import conversions
from legged.table import Table
from tests.oracles.programs.mujoco_floor import on_floor

_STEP, _HORIZON = 2e-3, 1.0  # [s]
_ROUNDS = 5  # timings in turns, of which the fastest counts
MEMBERS = (8, 64)
"""Numbers of robots that are simulated side by side."""


def throughput_table(walkers: list[Walker]) -> Table:
    """Return steps per second of closed loops in batches, and of `mujoco.rollout` with the torques of a closed loop."""
    lines = [(walker.name, str(num), *_measure(walker, num)) for walker in walkers for num in MEMBERS]
    heads = ("robot", "members", "closed loops, steps/s", "mujoco.rollout, steps/s")
    notes = (
        f"Time steps of {1e3 * _STEP:g} ms of all members per second, over {_HORIZON:g} s, {os.cpu_count()} threads.",
        "A closed loop evaluates the controller in every step; MuJoCo gets the torques of such a run.",
    )
    return Table("Locomotion, throughput", heads, tuple(lines), notes, left=1)


def _measure(walker: Walker, num: int) -> tuple[str, str]:
    """Return the time steps per second of all members: closed loops here, and `mujoco.rollout` without a controller.

    Args:
        walker: The robot and its law. num: Number of members.
    """
    robot, count = walker.robot, round(_HORIZON / _STEP)
    law = replace(walker.law(walker.gait), command=controllers.Command(vx=0.2 * walker.speed), rate=1.0 / _STEP)
    q, v = law.initial_state(robot)
    ground, steps = legged.Rigid(friction=FRICTION), legged.TimeStepping(_STEP)
    sim = legged.Simulation(robot, law, ground=ground, num=num, q=q, v=v, integrator=steps, fall=False)
    torques = np.empty((count, robot.nv))
    for k in range(count):
        sim.step()
        torques[k] = sim.state.rest[0, : robot.nv]  # the memory of the law begins with the torques that it holds
    model = on_floor(robot, FRICTION, _STEP)
    to = conversions.mujoco(robot, model)
    data = [mujoco.MjData(model) for _ in range(os.cpu_count() or 1)]
    data[0].qpos[:] = to.to_configuration(q)
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, data[0], state, full)
    forces = np.tile([to.to_force(q, tau) for tau in torques], (num, 1, 1))
    states, kind = np.tile(state, (num, 1)), mujoco.mjtState.mjSTATE_QFRC_APPLIED
    ours, theirs = [], []
    for _ in range(_ROUNDS):
        sim.reset()
        ours.append(_seconds(lambda: sim.step(n=count)))
        theirs.append(_seconds(lambda: mujoco.rollout.rollout(model, data, states, forces, control_spec=kind)))
    return f"{num * count / min(ours):.3g}", f"{num * count / min(theirs):.3g}"


def _seconds(function: Callable[[], object]) -> float:
    """Return the elapsed time of a call, [s]."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
