"""The law `Locomotion` in MuJoCo: the exported model of a robot, moved by the torques of the compiled controller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged import conversions
from legged.ground import Slope
from legged.spatial import Array
from legged.table import Table
from tests.oracles.programs.mujoco_floor import contact_forces, on_floor

STEP = 1e-3
"""Time step of MuJoCo, [s]."""
FRICTION = 0.6


@dataclass(frozen=True, eq=False)
class Steps:
    """Compiled evaluations of the controller of a robot.

    Attributes:
        evaluate: Function (q, v, wrenches, memory) -> the next memory, (m,), whose first entries are the torques.
        memory: Initial memory, (m,), mixed units.
        rate: Evaluations per second, [1/s].
    """

    evaluate: Callable[..., Array]
    memory: Array
    rate: float


def controller_steps(robot: legged.Robot, law: controllers.Locomotion) -> Steps:
    """Return the compiled evaluations of a law whose command is constant."""
    q, v = law.initial_state(robot)
    started, memory = law.start(robot, None, q, v)

    def evaluate(robot: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> Any:
        return started.evaluated(0.0, q, v, wrenches, started.memory(memory)).flat()

    return Steps(legged.compile(evaluate, robot, wrenches=(len(robot.links), 6), memory=memory.shape), memory, law.rate)


def walk(walker: Walker, command: tuple[float, float, float], slope: float, until: float) -> tuple[Array, Array]:
    """Return (times (T,), [s], base poses: x, y, z, heading, upright axis z, (T, 5)) of a walk in MuJoCo.

    The walk ends early when the base leans over by more than 1 rad.

    Args:
        walker: The robot.
        command: Velocity forward and to the left, [m/s], and yaw rate, [rad/s].
        slope: Inclination of the ground, rising along x, [rad].
        until: End time, [s].
    """
    robot = walker.robot
    law = replace(walker.law(walker.gait), command=controllers.Command(*command), terrain=Slope(slope))
    steps = controller_steps(robot, law)
    model = on_floor(robot, FRICTION, STEP, slope)
    data, to = mujoco.MjData(model), conversions.mujoco(robot, model)
    q, _ = law.initial_state(robot)
    data.qpos[:], data.qvel[:] = to.to_configuration(q), 0.0
    memory, every, nv = steps.memory, round(1.0 / (steps.rate * STEP)), robot.nv
    frames, times, rows = _frames(robot, model, data), [], []
    for k in range(round(until / STEP)):
        if k % every == 0:
            q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
            memory = steps.evaluate(q, v, _wrenches(robot, frames, contact_forces(robot, model, data)), memory)
            data.qfrc_applied[:] = to.to_force(q, memory[:nv])
            R, origin = robot.base.pose(q[: robot.base.nq])
            times.append(k * STEP)
            rows.append([*origin, np.arctan2(R[1, 0], R[0, 0]), R[2, 2]])
            if R[2, 2] < np.cos(1.0):
                break
        mujoco.mj_step(model, data)
    return np.array(times), np.array(rows)


def _frames(robot: legged.Robot, model: mujoco.MjModel, data: mujoco.MjData) -> list[Any]:
    """Return the body of MuJoCo of the link of each contact point, or its site if the link is fixed to another one."""
    bodies = {model.body(k).name for k in range(model.nbody)}
    names = [robot.links[contact.link].name for contact in robot.contacts]
    return [data.body(name) if name in bodies else data.site(name) for name in names]


def _wrenches(robot: legged.Robot, frames: list[Any], forces: Array) -> Array:
    """Return the wrenches of contact forces (n, 3) on the links, (n_links, 6), about each link's origin in its axes."""
    wrenches = np.zeros((len(robot.links), 6))
    for contact, frame, force in zip(robot.contacts, frames, forces, strict=True):
        local = frame.xmat.reshape(3, 3).T @ force
        wrenches[contact.link] += np.concatenate([np.cross(contact.position, local), local])
    return wrenches


def mujoco_table(walkers: list[Walker]) -> Table:
    """Return commanded and reached speeds of walks of 20 s in MuJoCo, on the flat and uphill."""
    lines = []
    for walker in walkers:
        speed = (0.1 if walker.feet == 2 else 0.3) * walker.speed
        for degrees in (0.0, 12.0):
            slope = float(np.radians(degrees))
            times, rows = walk(walker, (speed, 0.0, 0.0), slope, 20.0)
            fell = times[-1] < 19.9
            late = times > 10.0
            reached = "-" if fell else f"{(rows[late][-1, 0] - rows[late][0, 0]) / np.ptp(times[late]):.3f}"
            upright = f"falls at {times[-1]:.1f} s" if fell else "20 s"
            lines.append((walker.name, f"{degrees:g} degrees", f"{speed:.3f}", reached, upright))
    heads = ("robot", "slope", "commanded, m/s", "reached, m/s", "walks for")
    notes = (f"MuJoCo {mujoco.__version__}, steps of {1e3 * STEP:g} ms, friction {FRICTION:g}, control at 500 Hz.",)
    return Table("Locomotion in MuJoCo", heads, tuple(lines), notes, left=2)
