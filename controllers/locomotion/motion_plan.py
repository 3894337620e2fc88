"""From the desired motion of body and feet to joint torques: the problems of predictive and of whole-body control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from controllers.locomotion.forces.predictive import Plan, nominal_wrenches, predictive_control
from controllers.locomotion.forces.rigid_body import Problem, suited_weights
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.swing import Swing
from controllers.locomotion.torques.tasks import (
    Task,
    WholeBodyModel,
    center_of_mass_position,
    link_orientation,
    point_position,
)
from controllers.locomotion.torques.tasks import posture as posture_task
from controllers.locomotion.torques.whole_body import Contact, JointLimits, Result, whole_body, whole_body_program
from legged.compiler.ir import where
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, cross

HORIZON = 10
"""Number of steps of predictive control."""
_STEP = 0.28  # [sqrt(h / g)], duration of a step
_ITERATIONS = 6  # of predictive control, which starts from the last plan
_FOOT = 6.0  # [sqrt(g / h)], natural frequency of swinging feet
_POSTURE = 3.0  # [sqrt(g / h)], natural frequency of joints that no other task determines
_SEARCH = 0.1  # [sqrt(g h)], speed at which a foot that misses the ground moves down


@dataclass(frozen=True, eq=False)
class Foot:
    """A foot and its contact points.

    Attributes:
        link: Index of the link. sole: Mean of the contact points, (3,), [m], link axes.
        contacts: Indices of the contact points in `robot.contacts`.
        offsets: Contact points relative to the sole's center in the standing posture, (k, 3), [m], base axes.
        rotation: Orientation of the link in the standing posture, (3, 3), link to base axes.
    """

    link: int
    sole: Array
    contacts: tuple[int, ...]
    offsets: Array
    rotation: Array

    @property
    def is_flat(self) -> bool:
        """Whether several contact points keep the foot level."""
        return len(self.contacts) > 1


class BodyState(NamedTuple):
    """The robot as a rigid body.

    Attributes:
        position, velocity: Of the center of mass, (3,), [m], [m/s], world axes.
        rotation: Of the base, (3, 3), base to world axes.
        angular_velocity: Of the base, (3,), [rad/s], world axes.
    """

    position: Array
    velocity: Array
    rotation: Array
    angular_velocity: Array


class BodyReference(NamedTuple):
    """The desired motion of the body.

    Attributes:
        position: Of the center of mass now, (3,), [m], world axes.
        velocity: Of the center of mass, (3,), [m/s], world axes, now; it turns with the heading.
        rotation: Orientation now, (3, 3), base to world axes.
        yaw_rate: [rad/s].
    """

    position: Array
    velocity: Array
    rotation: Array
    yaw_rate: Any


@dataclass(frozen=True, eq=False)
class MotionPlanner:
    """Predictive and whole-body control of one robot.

    Attributes:
        robot: The robot.
        feet: Its feet.
        posture: Joint positions that no other task determines, (nj,), [rad] or [m].
        inertia: Of the standing robot about its center of mass, (3, 3), [kg m^2], base axes.
        height: Of the center of mass over the ground, [m].
        gravity: Magnitude, [m/s^2].
        limits: Limits of the joints.
    """

    robot: Robot
    feet: tuple[Foot, ...]
    posture: Array
    inertia: Array
    height: float
    gravity: float
    limits: JointLimits

    @property
    def time_unit(self) -> float:
        """sqrt(h / g), [s]."""
        return float(np.sqrt(self.height / self.gravity))

    def plan(
        self,
        body: BodyState,
        reference: BodyReference,
        state: GaitState,
        feet: Array,
        footsteps: Sequence[Array],
        normals: Sequence[Array],
        friction: Any,
        guess: Array,
    ) -> Plan:
        """Return the contact forces of the next steps and the acceleration of the body.

        Args:
            body: The present motion.
            reference: The desired motion.
            state: State of the gait.
            feet: Positions of the feet, (n, 3), [m], world axes.
            footsteps: Next landing place of each foot, (n, 3), [m], world axes.
            normals: Unit normal of the ground at each foot, (n, 3), dimensionless, world axes.
            friction: Coefficient of friction.
            guess: Wrenches of the last plan, (N, 6), [N m, N], world axes.
        """
        h = _STEP * self.time_unit
        times = [(k + 1.0) * h for k in range(HORIZON)]
        positions, velocities, turns = [], [], []
        at, zero = reference.position, 0.0 * reference.yaw_rate
        for _ in times:
            turn = (turns[-1][2] if turns else zero) + reference.yaw_rate * h
            c, s = np.cos(turn), np.sin(turn)
            x, y, climb = reference.velocity
            velocity = np.array([c * x - s * y, s * x + c * y, climb])
            at = at + h * velocity
            positions.append(at)
            velocities.append(velocity)
            turns.append(np.array([zero, zero, turn]))
        arms, active = [], []
        lift_offs, now = state.time_to_lift_off, state.stance
        for k in range(HORIZON):
            middle = (k + 0.5) * h
            center = body.position + middle * np.array([*velocities[k][:2], 0.0])
            early, late = state.stance_after((k + 0.25) * h), state.stance_after((k + 0.75) * h)
            row, fractions = [], []
            for i, foot in enumerate(self.feet):
                stays = (now[i] > 0.5) & (lift_offs[i] > middle)
                place = where(stays, feet[i], footsteps[i])
                for offset in foot.offsets:
                    row.append(place + reference.rotation @ offset - center if foot.is_flat else place - center)
                    fractions.append(0.5 * (early[i] + late[i]))
            arms.append(row)
            active.append(fractions)
        points = [normal for foot, normal in zip(self.feet, normals, strict=True) for _ in foot.contacts]
        yaw = np.stack([zero, zero, reference.yaw_rate + zero])
        problem = Problem(
            position=body.position,
            velocity=body.velocity,
            orientation=rotation_error(body.rotation @ reference.rotation.T),
            angular_velocity=body.angular_velocity,
            positions=np.array(positions),
            velocities=np.array(velocities),
            orientations=np.array(turns),
            angular_velocities=np.array([yaw] * HORIZON),
            mass=self.robot.mass,
            inertia=body.rotation @ self.inertia @ body.rotation.T,
            gravity=self.robot.gravity,
            arms=np.array(arms),
            normals=np.array([points] * HORIZON),
            active=np.array(active),
            friction=friction,
            most=np.inf,
            weights=suited_weights(self.robot.mass, self.height, self.gravity, len(points)),
            time_step=h,
        )
        start = where(guess[0, 5] > 0.0, guess, nominal_wrenches(problem))
        return predictive_control(problem, start, _ITERATIONS)

    def torques(
        self,
        model: WholeBodyModel,
        plan: Plan,
        contact: Sequence[Any],
        stance: Sequence[Any],
        swings: Sequence[Swing],
        reference: BodyReference,
        normals: Sequence[Array],
        friction: Any,
        start: Array,
    ) -> Result:
        """Return the joint torques that follow the plan and move the feet.

        Args:
            model: The robot at its present state.
            plan: The plan.
            contact: 1 for each foot that stands on the ground, (n,).
            stance: 1 for each foot that is to stand, (n,).
            swings: Desired motion of each foot in the air.
            reference: The desired motion of the body.
            normals: Unit normal of the ground at each foot, (n, 3), dimensionless, world axes.
            friction: Coefficient of friction.
            start: Iterate of the last call, (m,), mixed units.
        """
        contacts, tasks = self._program(model, plan, contact, stance, swings, reference, normals, friction)
        return whole_body(model, contacts, tasks, self.limits, start)

    def iterate_size(self, q: Array) -> int:
        """Return the length of the iterate of `torques`.

        Args:
            q: A configuration, (nq,).
        """
        n = sum(len(foot.contacts) for foot in self.feet)
        model = WholeBodyModel(self.robot, q, np.zeros(self.robot.nv))
        zero = np.zeros(3)
        plan = Plan(np.zeros((HORIZON, n, 3)), np.zeros((HORIZON, 6)), zero, zero, 0.0, 0.0)
        reference = BodyReference(zero, zero, np.eye(3), 0.0)
        one, up = [1.0] * len(self.feet), [np.array([0.0, 0.0, 1.0])] * len(self.feet)
        swings = [Swing(zero, zero, zero)] * len(self.feet)
        contacts, tasks = self._program(model, plan, one, one, swings, reference, up, 0.5)
        return whole_body_program(model, contacts, tasks, self.limits, 1.0)[0].iterate_size

    def _program(
        self,
        model: WholeBodyModel,
        plan: Plan,
        contact: Sequence[Any],
        stance: Sequence[Any],
        swings: Sequence[Swing],
        reference: BodyReference,
        normals: Sequence[Array],
        friction: Any,
    ) -> tuple[list[Contact], list[Task]]:
        """Return the contacts and tasks of whole-body control."""
        w = 1.0 / self.time_unit
        free, joints = ((0.0, 0.0), (_POSTURE**2 * w * w, 2 * _POSTURE * w))
        contacts: list[Contact] = []
        tasks = [
            center_of_mass_position(model, np.zeros(3), acceleration=plan.acceleration, gains=free),
            link_orientation(model, 0, np.eye(3), acceleration=plan.angular_acceleration, gains=free),
            posture_task(model, self.posture, gains=joints, weight=1e-3),
        ]
        down = np.array([0.0, 0.0, -_SEARCH * np.sqrt(self.gravity * self.height)])
        gains = (_FOOT**2 * w * w, 2 * _FOOT * w)
        feet = zip(self.feet, contact, stance, swings, normals, strict=True)
        for foot, touches, stands, swing, normal in feet:
            axes, weight = tangent_axes(normal, reference.rotation[:, 0]), 1.0 - touches
            for i in foot.contacts:
                point = self.robot.contacts[i]
                force = plan.forces[0][len(contacts)]
                contacts.append(Contact(point.link, point.position, touches, friction, axes, force, damping=4.0 * w))
            now = model.point(foot.link, foot.sole).position
            position = where(stands > 0.5, now, swing.position)
            velocity = where(stands > 0.5, down, swing.velocity)
            acceleration = where(stands > 0.5, np.zeros(3), swing.acceleration)
            tasks.append(point_position(model, foot.link, foot.sole, position, velocity, acceleration, gains, weight))
            if foot.is_flat:
                tasks.append(link_orientation(model, foot.link, axes @ foot.rotation, gains=gains, weight=weight))
        return contacts, tasks


def tangent_axes(normal: Array, forward: Array) -> Array:
    """Return contact axes, (3, 3), columns forward, left and normal, world axes.

    Args:
        normal: Unit normal of the ground, (3,), dimensionless, world axes.
        forward: A direction that is not the normal's, (3,), dimensionless, world axes.
    """
    along = forward - (forward @ normal) * normal
    along = along / np.sqrt(along @ along)
    return np.array([along, cross(normal, along), normal]).T
