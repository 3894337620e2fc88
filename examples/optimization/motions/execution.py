"""Execution of plans: the solver's feedback on rigid ground, many disturbed trials of it, and MuJoCo."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import legged
from examples.optimization.motions.planning import Array, Nodes, Plan, PlannedRobot
from legged import optimization as oc
from legged.ground import Flat

FRICTION = 0.7
SAMPLE, TIME_STEP, REST = 0.01, 0.002, 1.0  # between samples, of the simulations, and after the plan, [s]


class Execution:
    """A plan of a robot with its solution and its controller.

    Attributes:
        subject: The robot. plan: The problem. solution: Its solution. law: The controller. until: End, [s].
        ground: The ground with the obstacles of the plan.
    """

    def __init__(self, subject: PlannedRobot, plan: Plan, solution: oc.Solution):
        self.subject, self.plan, self.solution = subject, plan, solution
        regulator, limit = regulated(subject, plan.problem, solution), subject.effort
        self.law = oc.Tracking(plan.problem, regulator, lower=-limit, upper=limit)
        self.until = float(solution.t[-1]) + REST
        self.ground = legged.Rigid(friction=FRICTION, terrain=Flat(plan.level), obstacles=plan.obstacles)

    def run(self) -> legged.Run:
        """Return the undisturbed simulation."""
        q, v = self.solution.q[0], self.solution.v[0]
        return legged.simulate(
            self.subject.robot,
            self.law,
            ground=self.ground,
            integrator=legged.TimeStepping(TIME_STEP),
            until=self.until,
            sample=SAMPLE,
            fall=False,
            q=q,
            v=v,
        )

    def trials(self, count: int, seed: int = 0) -> Array:
        """Return whether each of many disturbed simulations succeeds, (count,).

        The mass of the base changes by 5 % of the robot's, the friction from 0.55 to 0.85, the robot begins with errors
        of joints of 0.02 rad and of velocities of 0.05 rad/s and 0.05 m/s, and a push of 0.1 m/s times its mass acts
        in the first half of the plan; the numbers are bounds, from which values are drawn uniformly.

        Args:
            count: Number of simulations. seed: Of the random numbers.
        """
        robot, random = self.subject.robot, np.random.default_rng(seed)
        base = robot.links[0].name
        values, mass = robot.parameters(), robot.mass

        def uniform(*shape: int) -> Array:
            return random.uniform(-1.0, 1.0, (count, *shape))

        q = np.array([legged.integrate(robot, self.solution.q[0], dq) for dq in 0.02 * uniform(robot.nv) * self._joints])
        v = np.tile(self.solution.v[0], (count, 1))
        v[:, : robot.base.nv] += 0.05 * uniform(robot.base.nv)
        push = legged.Push(base, (0.0, 0.0, 0.0), at=0.0, duration=0.05)
        runs = legged.rollout(
            robot,
            self.law,
            ground=self.ground,
            until=self.until,
            q=q,
            v=v,
            integrator=legged.TimeStepping(TIME_STEP),
            sample=SAMPLE,
            fall=False,
            pushes=[push],
            vary={
                f"robot.{base}.mass": values[f"{base}.mass"] + 0.05 * mass * uniform(),
                "ground.friction": FRICTION + 0.15 * uniform(),
                "pushes.0.at": 0.5 * self.solution.t[-1] * (0.5 + 0.5 * uniform()),
                "pushes.0.impulse": 0.1 * mass / np.sqrt(3.0) * uniform(3),
            },
        )
        self.runs = runs
        return np.array([self.succeeds(runs.q[i]) for i in range(count)])

    @property
    def _joints(self) -> Array:
        """One for the velocities of joints, zero for those of the base, (nv,)."""
        robot = self.subject.robot
        return np.where(np.arange(robot.nv) < robot.base.nv, 0.0, 1.0)

    def succeeds(self, q: Array) -> bool:
        """Return whether a motion ends at rest near the end of the plan, without links in the ground.

        Args:
            q: Configurations, (T, nq), every `SAMPLE`.
        """
        robot, end = self.subject.robot, self.solution.q[-1]
        if not np.isfinite(q).all():
            return False
        error = legged.difference(robot, end, q[-1])
        moved = legged.difference(robot, q[-11], q[-1])
        origins = legged.compile(heights, robot)(q)
        return bool(
            np.linalg.norm(error[:2]) < 0.2
            and np.linalg.norm(error[3:6]) < 0.25
            and np.abs(moved).max() < 0.02
            and origins.min() > -0.005
        )

    def in_mujoco(self) -> Array:
        """Return the configurations of the exported scene in MuJoCo, (T, nq), every `SAMPLE`."""
        mujoco: Any = import_module("mujoco")
        robot, law = self.subject.robot, self.law
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.xml"
            legged.save_mjcf(robot, path, scene=True, ground=self.ground, time_step=TIME_STEP)
            model = mujoco.MjModel.from_xml_path(str(path))
        nothing, nb = np.zeros(0), robot.base.nv
        data, to = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
        data.qpos[:] = to.to_configuration(self.solution.q[0])
        data.qvel[:] = to.to_velocity(self.solution.q[0], self.solution.v[0])
        stall = self.subject.effort / (1.0 - self.subject.share)

        def torque_of(robot: legged.Robot, t: Any, q: Array, v: Array) -> Any:
            return law.torque(t, 0, q, v, nothing, nothing)

        torque: Any = legged.compile(torque_of, robot, t=())
        motion = list[Array]()
        for k in range(round(self.until / TIME_STEP) + 1):
            q = to.from_configuration(data.qpos)
            if k % round(SAMPLE / TIME_STEP) == 0:
                motion.append(q)
            v = to.from_velocity(data.qpos, data.qvel)
            speed = v[nb:] / self.subject.speed
            tau = np.clip(torque(data.time, q, v), -stall * np.clip(1.0 + speed, 0.0, 1.0), stall * np.clip(1.0 - speed, 0.0, 1.0))
            data.qfrc_applied[:] = to.to_force(q, np.concatenate([np.zeros(nb), tau]))
            mujoco.mj_step(model, data)
        return np.array(motion)


def regulated(subject: PlannedRobot, problem: oc.Problem, solution: oc.Solution) -> oc.Solution:
    """Return a solution with the gains of the linear-quadratic regulator about it, with weights of `subject.tracking`.

    It is the solution of a problem whose costs are the deviations from the solution, which is its own optimum.
    """
    durations, nodes = np.diff(solution.t), Nodes()
    for k, node in enumerate(problem.nodes):
        state = oc.Cost(oc.terms.state, subject.tracking, q=solution.q[k], v=solution.v[k])
        control = oc.Cost(oc.terms.control, subject.control, reference=solution.u[k])
        if isinstance(node, oc.Stage):
            nodes.append(oc.Stage(durations[k], node.contacts, [state, control]))
        else:
            nodes.append(oc.Impact(node.contacts, []))
    last = oc.Cost(oc.terms.state, subject.tracking, q=solution.q[-1], v=solution.v[-1])
    tracked = oc.Problem(subject.robot, nodes, [last], q=solution.q[0], v=solution.v[0], velocity_gain=20.0, integrator="midpoint")
    found = oc.solve(tracked, q=solution.q, v=solution.v, u=solution.u, iterations=3)
    return replace(solution, gain=found.gain)


def heights(robot: legged.Robot, q: Array) -> Array:
    """Return the heights of the origins of all links, (links,), [m]."""
    return np.array([legged.frame_pose(robot, q, link.name).position[2] for link in robot.links])


def described(q: Array) -> str:
    """Return the pose of the base in words."""
    tilt = np.degrees(2.0 * np.arccos(min(1.0, np.hypot(q[0], q[3]))))
    heading = np.degrees(2.0 * np.arctan2(q[3], q[0]))
    heading = (heading + 180.0) % 360.0 - 180.0
    place = [round(float(x), 2) + 0.0 for x in q[4:7]]  # without negative zeros
    return f"base at {place} m, heading {heading:.0f} degrees, tilt {tilt:.0f} degrees"
