"""Problems of motions in phases: stages with contacts, flights and landings, with the limits of the motors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import files
from typing import Any, NamedTuple

import numpy as np

import legged
from legged import optimization as oc

Array = np.ndarray
Nodes = list[oc.Stage | oc.Impact]
terms = oc.terms
CONE = 0.5  # coefficient of friction in plans; the ground of the simulations has 0.7
STEP = 0.02  # [s]
MARGIN, SPEED_MARGIN = 0.85, 0.85  # largest torque and speed without load in plans relative to those of the motors
UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])  # quaternion, w first


class Plan(NamedTuple):
    """A problem, the guess of its trajectory, the obstacles of the scene, and the height of its ground.

    `late` is the largest time by which impacts take place after their planned time, [s]: at soft landings feet are
    drawn up while the plan waits for their contact. `settle` is the time after a landing for which the regulator goes
    on, [s]; locomotion follows.
    """

    problem: oc.Problem
    q: Array
    v: Array
    obstacles: tuple[tuple[str, Any], ...] = ()
    level: float = 0.0
    late: float = 0.15
    settle: float = 0.0


def loaded(file: str) -> legged.Robot:
    """Return a robot of example-robot-data."""
    return legged.load(next(str(f.locate()) for f in files("example-robot-data") or () if f.name == file))


class PlannedRobot:
    """A robot with the costs that the stages of its motions share.

    The torque of a motor is at most `effort`, and falls linearly from there at `corner` to zero at `speed`.

    Attributes:
        robot: The robot; simulations apply its motors' law effort (1 - rate / speed) / (1 - corner / speed).
        feet: Its contacts. joints: Standing posture, (nj,), [rad]. q: Standing configuration, (nq,).
        effort, speed: Of the motors, (nj,), [N m] and [rad/s]. share: corner / speed.
        lower, upper: Limits of the joints, (nj,), [rad].
    """

    damping = tracking = np.zeros(0)  # weights of velocities in plans, and of states in their regulators
    control = 1.0  # weight of torques, in both
    gait = "trot"
    landing = np.array([0.0, 0.0, 1e4])  # weights of the places of feet at impacts, in regulators
    body_costs: list[oc.Term]

    def __init__(
        self,
        robot: legged.Robot,
        feet: Callable[[legged.Robot], list[oc.Contact]],
        joints: Any,
        effort: float,
        corner: float,
    ):
        names, values = [joint.name for joint in robot.joints], robot.parameters()
        limits = (
            np.array([values[f"{name}.{field}"] for name in names]) for field in ("effort", "speed", "lower", "upper")
        )
        self.effort, self.speed, self.lower, self.upper = limits
        self.effort, self.share = effort * self.effort, corner
        stall = self.effort / (1.0 - corner)
        self.robot = robot.with_parameters({f"{name}.effort": x for name, x in zip(names, stall, strict=True)})
        self.feet, self.joints = feet(self.robot), np.array(joints)
        self.q = self.placed(self.joints)

    def placed(self, joints: Array, base: Array = UPRIGHT) -> Array:
        """Return the configuration with an orientation of the base and the lowest foot on the ground."""
        q = np.concatenate([base, np.zeros(3), joints])
        q[6] = -min(legged.frame_pose(self.robot, q, foot.frame).position[2] for foot in self.feet)
        return q

    def stage(
        self,
        feet: Sequence[oc.Contact],
        *extra: oc.Term,
        joints: Array | None = None,
        weight: Any = 1.0,
        phase: str = "",
        step: float = STEP,
        body: list[oc.Term] | None = None,
        margin: float = MARGIN,
    ) -> oc.Stage:
        """Return a stage in which feet stand, with friction cones; the posture has a weight, a number or (nj,).

        `body` replaces the costs `body_costs` of the height of trunk and knees. `margin` is the largest torque relative
        to those of the motors.
        """
        slope = margin * self.effort / (1.0 - self.share)
        costs = [
            oc.Cost(terms.joint_positions, weight, joints=self.joints if joints is None else joints),
            oc.Cost(terms.velocity, self.damping),
            oc.Cost(terms.control, self.control),
            oc.Cost(terms.motor_limits, 50.0, barrier=True, effort=slope, speed=SPEED_MARGIN * self.speed),
            oc.Cost(terms.torque_limits, 50.0, barrier=True, limit=margin * self.effort),
            oc.Cost(terms.joint_limits, 1e3, barrier=True, lower=self.lower + 0.05, upper=self.upper - 0.05),
        ]
        costs += self.body_costs if body is None else body
        for foot in feet:
            costs += self.contact_costs(foot)
        return oc.Stage(step, feet, [*costs, *extra], phase)

    def contact_costs(self, foot: oc.Contact) -> list[oc.Term]:
        """Return the costs of the force on a foot."""
        inner = CONE / np.sqrt(2.0)  # of the pyramid inside of the cone
        return [oc.Cost(terms.friction_cone, 1.0, barrier=True, contact=foot.name, friction=inner)]

    def problem(
        self,
        nodes: Nodes,
        end: Array,
        start: Array | None = None,
        factors: Any = (0.7, 1.15),
        integrator: str = "midpoint",
    ) -> oc.Problem:
        """Return the problem that ends in standing still at a configuration."""
        nv = self.robot.nv
        weights = np.concatenate([np.full(6, 100.0), np.full(nv - 6, 10.0), np.full(nv, 1.0)])
        final = [oc.Cost(terms.state, weights, q=end, v=np.zeros(nv))]
        q = self.q if start is None else start
        return oc.Problem(
            self.robot, nodes, final, q=q, velocity_gain=20.0, duration_factors=factors, integrator=integrator
        )


def rates(robot: legged.Robot, q: Array, nodes: Nodes) -> Array:
    """Return the velocities of a sequence of configurations in flight, (nodes + 1, nv); zero while feet stand."""
    v = np.zeros((len(q), robot.nv))
    for k, node in enumerate(nodes):
        if isinstance(node, oc.Impact):
            v[k] = v[k - 1]
        elif not node.contacts:
            v[k] = legged.difference(robot, q[k], q[k + 1]) / node.duration
    return v
