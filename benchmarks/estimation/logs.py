"""Walks whose readings the filters receive: simulated by the toolkit on rigid ground, or by MuJoCo on two floors.

The steps of stairs are one after the other, from the height of the center of mass in front of the robot on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import controllers
import legged
from benchmarks.locomotion.walkers import Walker
from legged import deployment, estimation
from legged.dynamics.kinematics import link_poses
from legged.estimation.contacts import link_wrenches
from legged.estimation.readings import SensedRobot
from legged.ground import Flat, Slope, Stairs
from legged.ground.terrain import Terrain
from legged.spatial import Array

RATE = 500.0
"""Readings per second, [1/s]."""
_STEPS = 40
"""Number of steps of stairs, which are as deep as the center of mass is high."""


class Walk(NamedTuple):
    """A walk: speed, [sqrt(g h)], yaw rate, [sqrt(g / h)], slope, [rad], height of steps, [h], friction, and simulator.

    The height of the center of mass is h. The law counts on a friction coefficient of 0.5. Simulators are "legged";
    "mujoco", with the stiff contacts that `legged.save_mjcf` writes; and "mujoco, soft", with the contacts that MuJoCo
    has by default, whose time constant is 20 ms: feet sink in by some millimeters and creep. Its floor is level; slope,
    steps and friction are those of "legged".
    """

    speed: float
    turn: float = 0.0
    slope: float = 0.0
    rise: float = 0.0
    friction: float = 0.8
    simulator: str = "legged"


class Motion(NamedTuple):
    """True states: times (T,), q (T, nq), v (T, nv), and forces on the feet in world axes, (T, n, 3), [N]."""

    times: Array
    q: Array
    v: Array
    forces: Array


def terrain_of(walker: Walker, walk: Walk) -> Terrain:
    """Return the terrain of a walk."""
    if walk.rise:
        h = walker.height
        return Stairs(tuple(h * (1.0 + k) for k in range(_STEPS)), (walk.rise * h,) * _STEPS)
    return Slope(walk.slope)


def motion(walker: Walker, walk: Walk, seconds: float) -> Motion:
    """Return the motion of a robot under `Locomotion` on its true state."""
    robot = walker.robot
    command = controllers.Command(vx=walk.speed * walker.speed, yaw_rate=walk.turn * walker.turning)
    if walk.simulator != "legged":
        law = controllers.Locomotion(walker.gait, command, terrain=Flat())
        return _in_mujoco(robot, law, seconds, walk.simulator == "mujoco, soft")
    terrain, step = terrain_of(walker, walk), legged.TimeStepping(1.0 / RATE)
    law = controllers.Locomotion(walker.gait, command, terrain=terrain)
    ground = legged.Rigid(friction=walk.friction, terrain=terrain)
    run = legged.simulate(robot, law, ground=ground, until=seconds, integrator=step, sample=1.0 / RATE)
    return Motion(run.times, run.q, run.v, run.contacts.forces)


def _in_mujoco(robot: legged.Robot, law: controllers.Locomotion, seconds: float, soft: bool) -> Motion:
    """Return a motion in MuJoCo, with the torques of the law at the true state and the true forces."""
    exact = estimation.Deviations(gyro=0.0, accelerometer=0.0, encoder=0.0, joint_rate=0.0)
    plant = deployment.MujocoPlant(
        robot, law.initial_state(robot)[0], instruments=estimation.Instruments(exact, force=0.0)
    )
    if soft:  # the defaults of MuJoCo
        plant.model.geom_solref[:], plant.model.opt.impratio = (0.02, 1.0), 1.0
    started, memory = law.start(robot, None, *plant.state)
    sensed = SensedRobot.of(robot)

    def evaluate(q: Any, v: Any, forces: Any, memory: Any) -> Any:
        rotations, _ = link_poses(robot, q)
        wrenches = link_wrenches(sensed, rotations, forces)
        after = started.evaluated(0.0, q, v, wrenches, started.memory(memory)).flat()
        return after, np.array(forces) @ rotations[0].T

    shapes: dict[str, Any] = {"q": (robot.nq,), "v": (robot.nv,), "forces": (len(sensed.feet), 3)}
    kernel = legged.compile(evaluate, memory=memory.shape, **shapes)
    rows: list[tuple[Array, Array, Array]] = []
    for _ in range(round(seconds * RATE) + 1):
        q, v = plant.state
        memory, forces = kernel(q, v, plant.measured().reading.forces, memory)
        rows.append((q, v, forces))
        for _ in range(round(1.0 / (RATE * plant.step))):
            plant.advance(deployment.JointCommand.of_torques(memory[robot.base.nv : robot.nv]))
    parts = [np.array(part) for part in zip(*rows, strict=True)]
    return Motion(np.arange(len(rows)) / RATE, *parts)
