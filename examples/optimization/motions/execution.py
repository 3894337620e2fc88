"""Execution of plans: the solver's feedback on rigid ground, many disturbed trials of it, and MuJoCo."""

from __future__ import annotations

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import controllers
import legged
from examples.optimization.motions.planning import CONE, Array, Plan, PlannedRobot
from legged import optimization as oc
from legged.ground import Flat
from legged.simulation.controller import adapt, full_torque

FRICTION = 0.7
MOVED, RISE = 0.15, 0.7  # distance of a motion to another place, [m]; least rise or depth over the planned one
EARLY = 0.1  # largest time by which impacts take place before their planned time, [s]
SAMPLE, TIME_STEP, REST = 0.01, 0.002, 2.0  # between samples, of the simulations, and after the plan, [s]


class Execution:
    """A plan of a robot with its solution and its controller.

    Attributes:
        subject: The robot. plan: The problem. solution: Its solution. law: The controller. until: End, [s].
        ground: The ground with the obstacles of the plan.
    """

    def __init__(self, subject: PlannedRobot, plan: Plan, solution: oc.Solution):
        self.subject, self.plan, self.solution = subject, plan, solution
        weights: Any = {"state": subject.tracking, "control": subject.control, "landing": subject.landing}
        gains, limit = oc.regulated(plan.problem, solution, **weights), subject.effort
        times = {"early": EARLY, "late": plan.late, "settle": plan.settle}
        tracking = oc.Tracking(plan.problem, gains, lower=-limit, upper=limit, **times)
        stands = controllers.Locomotion(subject.gait, friction=CONE)
        switched = controllers.SwitchedLaw([tracking, stands], tracking.landed)
        self.tracking, self.law = tracking, controllers.NominalModel(switched, subject.robot)
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

        q = np.array(
            [legged.integrate(robot, self.solution.q[0], dq) for dq in 0.02 * uniform(robot.nv) * self._joints]
        )
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
        """Return whether a motion ends standing near the end of the plan, after its flight, above the scene.

        It is upright and at rest within 0.35 rad and 0.25 m of the planned end, and, if the plan moves the base further
        than `MOVED`, within half of that distance; its height is within 0.1 m. If the plan has a flight, the base rises
        by at least `RISE` of the planned rise. If it has none and lowers the base by more than `MOVED`, the base sinks
        by at least `RISE` of the planned depth. The origins of trunk and legs stay above the scene.

        Args:
            q: Configurations, (T, nq), every `SAMPLE`.
        """
        robot, end, start = self.subject.robot, self.solution.q[-1], self.solution.q[0]
        if not np.isfinite(q).all():
            return False
        error = legged.difference(robot, end, q[-1])
        moved = legged.difference(robot, q[-11], q[-1])
        distance = float(np.linalg.norm(end[4:6] - start[4:6]))
        near = min(0.25, 0.5 * distance) if distance > MOVED else 0.25
        rest = max(start[6], end[6])
        flies = any(isinstance(node, oc.Stage) and not node.contacts for node in self.plan.problem.nodes)
        rise = RISE * (self.solution.q[:, 6].max() - rest) if flies else -np.inf
        depth = min(start[6], end[6]) - self.solution.q[:, 6].min()
        low = min(start[6], end[6]) - RISE * depth if depth > MOVED and not flies else np.inf
        return bool(
            np.linalg.norm(error[:3]) < 0.35
            and np.linalg.norm(end[4:6] - q[-1, 4:6]) < near
            and abs(end[6] - q[-1, 6]) < 0.1
            and q[:, 6].max() - rest > rise
            and q[:, 6].min() < low
            and np.abs(moved).max() < 0.02
            and self.clearance(q) > 0.0
        )

    def clearance(self, q: Array) -> float:
        """Return the least height of the origins of links without contact points over the scene, [m].

        Args:
            q: Configurations, (T, nq).
        """
        robot = self.subject.robot
        places = legged.compile(body_places, robot)(q)
        ground = np.full(places.shape[:2], self.plan.level)
        for _, box in self.plan.obstacles:
            inside = (np.abs(places[..., :2] - box.center[:2]) < 0.5 * np.asarray(box.size)[:2]).all(axis=-1)
            ground = np.where(inside, np.maximum(ground, box.center[2] + 0.5 * box.size[2]), ground)
        return float((places[..., 2] - ground).min())

    def in_mujoco(self) -> Array:
        """Return the configurations of the exported scene in MuJoCo, (T, nq), every `SAMPLE`."""
        mujoco: Any = import_module("mujoco")
        robot = self.subject.robot
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "scene.xml"
            legged.save_mjcf(robot, path, scene=True, ground=self.ground, time_step=TIME_STEP)
            model = mujoco.MjModel.from_xml_path(str(path))
        data, to = mujoco.MjData(model), legged.conversions.mujoco(robot, model)
        q, v = self.solution.q[0], self.solution.v[0]
        data.qpos[:], data.qvel[:] = to.to_configuration(q), to.to_velocity(q, v)
        law, memory = adapt(self.law).start(robot, self.ground, q, v)
        stall, most = self.subject.effort / (1.0 - self.subject.share), self.subject.speed

        def evaluated(robot: Any, t: Any, q: Any, v: Any, wrenches: Any, memory: Any) -> Any:
            memory = law.update(t, 0, q, v, wrenches, memory)
            return full_torque(robot, law.torque(t, 0, q, v, wrenches, memory)), memory

        step: Any = legged.compile(evaluated, robot, t=(), wrenches=(len(robot.links), 6), memory=memory.shape)
        motion = list[Array]()
        for k in range(round(self.until / TIME_STEP) + 1):
            q, v = to.from_configuration(data.qpos), to.from_velocity(data.qpos, data.qvel)
            if k % round(SAMPLE / TIME_STEP) == 0:
                motion.append(q)
            tau, memory = step(data.time, q, v, _wrenches(robot, mujoco, model, data), memory)
            rates = v[-robot.nj :] / most
            tau = np.clip(
                tau[-robot.nj :], -stall * np.clip(1.0 + rates, 0.0, 1.0), stall * np.clip(1.0 - rates, 0.0, 1.0)
            )
            data.qfrc_applied[:] = to.to_force(q, np.concatenate([np.zeros(robot.base.nv), tau]))
            mujoco.mj_step(model, data)
        return np.array(motion)


def _wrenches(robot: legged.Robot, mujoco: Any, model: Any, data: Any) -> Array:
    """Return the forces of MuJoCo on the contact points as wrenches on their links, (n_links, 6), link axes."""
    wrenches, force = np.zeros((len(robot.links), 6)), np.zeros(6)
    points = {model.geom(point.name).id: point for point in robot.contacts}
    for k, contact in enumerate(data.contact):
        for geom, sign in ((contact.geom1, -1.0), (contact.geom2, 1.0)):
            if geom in points:
                mujoco.mj_contactForce(model, data, k, force)
                local = data.geom_xmat[geom].reshape(3, 3).T @ (sign * contact.frame.reshape(3, 3).T @ force[:3])
                point = points[geom]
                wrenches[point.link] += np.concatenate([np.cross(point.position, local), local])
    return wrenches


def body_places(robot: legged.Robot, q: Array) -> Array:
    """Return the origins of links without contact points, such as trunk and knees, (n, 3), [m], world axes."""
    feet = {point.link for point in robot.contacts}
    names = [link.name for link in robot.links if link.index not in feet]
    return np.array([legged.frame_pose(robot, q, name).position for name in names])


def described(q: Array) -> str:
    """Return the pose of the base in words."""
    tilt = np.degrees(2.0 * np.arccos(min(1.0, np.hypot(q[0], q[3]))))
    heading = np.degrees(2.0 * np.arctan2(q[3], q[0]))
    heading = (heading + 180.0) % 360.0 - 180.0
    place = [round(float(x), 2) + 0.0 for x in q[4:7]]  # without negative zeros
    return f"base at {place} m, heading {heading:.0f} degrees, tilt {tilt:.0f} degrees"
