"""From the desired motion of body and feet to joint torques: the problems of predictive and of whole-body control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from controllers.locomotion.forces.predictive import Plan, predictive_control
from controllers.locomotion.forces.rigid_body import Problem, suited_weights
from controllers.locomotion.gait.footsteps import Sway
from controllers.locomotion.gait.inclined_ground import InclinedWalk
from controllers.locomotion.gait.schedule import GaitState
from controllers.locomotion.gait.support import stance_shares
from controllers.locomotion.gait.swing import Swing, path_weights
from controllers.locomotion.motion import BodyReference, BodyState, FeetMotion, Foot
from controllers.locomotion.torques.tasks import (
    Task,
    Tracking,
    WholeBodyModel,
    average_angular_velocity,
    center_of_mass_position,
    link_orientation,
    point_position,
    posture,
)
from controllers.locomotion.torques.whole_body import Contact, JointLimits, Result, whole_body, whole_body_program
from legged.algorithms.centroidal import momentum_matrix
from legged.compiler.ir import where
from legged.dynamics.kinematics import center_of_mass, momentum
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, cross, factor_symmetric, solve_factored, solve_symmetric

HORIZON = 10
"""Number of steps of predictive control."""
_STEP, _SHARE = 0.28, 0.17  # [sqrt(h / g)], duration of a step, and at most this share of a cycle
_ITERATIONS = 8  # of predictive control, which starts from the last plan
_POSITION = 0.1  # [h], tolerated error of the center of mass
_VELOCITY = 0.2  # [sqrt(g h)], tolerated error of its velocity
_VELOCITY_ON_SOLES = 0.1  # the same on flat feet, beyond whose soles the center of pressure cannot move to correct it
_JUMP_STIFFNESS = 9.0  # factor of the weights of the vertical motion in the push of a jump
_FOOT = 6.0  # [sqrt(g / h)], natural frequency of swinging feet
_FLAT_FOOT = 0.05  # weight of a flat foot in a swing; at 1 a leg that is stretched at its lift-off turns the base
_CLOSE_FOOT = 0.2  # the same at lift-off for feet that follow their paths closely, see `path_weights`
_POINT_FOOT = 0.05  # the same for point feet
_LIFTED = 0.1  # share of this weight for the orientation at lift-off, of an ankle near its range; it is 1 at touchdown
_LATE_FOOT = 1.0  # weight of the downward motion of a foot that is to stand
_POSTURE = 3.0  # [sqrt(g / h)], natural frequency of joints that no other task determines
_DETERMINED, _OTHERS = 1e-3, 0.1  # weights of the posture: joints that other tasks determine, and all others
_BASE = 3.0  # [sqrt(g / h)], natural frequency of the base's orientation
_BASE_WEIGHT = 0.03  # its weight beside the average angular velocity
_SEARCH = 0.6  # [sqrt(g h)], speed at which a foot that is to stand and misses the ground moves down
_SEARCH_ON_SOLES = 0.2  # the same for flat feet
_TURNING = 0.02  # [sqrt(g / h)], yaw rate from which on one end of a sole carries, if the leg does not turn the sole


@dataclass(frozen=True, eq=False)
class MotionPlanner:
    """Predictive and whole-body control of one robot.

    Attributes:
        robot: The robot. feet: Its feet.
        posture: Joint positions that no other task determines, (nj,), [rad] or [m].
        inertia: Of the standing robot about its center of mass, (3, 3), [kg m^2], base axes.
        leg_inertias: Angular momentum of the standing robot about its center of mass per velocity of each foot relative
            to the base, (n, 3, 3), [kg m], base axes.
        height: Of the center of mass over the ground, [m].
        base_height: Of the base origin over the ground in the posture, [m].
        gravity: Magnitude, [m/s^2]. limits: Limits of the joints. inclined: What changes on inclined ground.
        follows_closely: Whether flat feet follow their paths closely, see `path_weights`.
        rotation_weight: Of the planned rotation, [m^2], a number or one for each axis, (3,).
        lifted_share: Upward velocity of the center of mass per that of a foot under a base at rest; 0 for more feet.
    """

    robot: Robot
    feet: tuple[Foot, ...]
    posture: Array
    inertia: Array
    leg_inertias: Array
    height: float
    base_height: float
    gravity: float
    limits: JointLimits
    inclined: InclinedWalk = InclinedWalk()  # noqa: RUF009
    follows_closely: bool = False
    rotation_weight: Any = 0.0
    lifted_share: float = 0.0

    def __post_init__(self) -> None:
        if self.plans_average:
            _ = self._upper_body  # a number of the started law from now on, which compiled rollouts list at the start

    @property
    def on_soles(self) -> bool:
        """Whether all feet are flat."""
        return all(foot.is_flat for foot in self.feet)

    @property
    def plans_average(self) -> bool:
        """Whether the planned rotation is the average angular velocity, and that of the base otherwise.

        Moments of flat feet determine the angular momentum. The forces of two point feet leave one component free, so
        that the base is planned. A robot with two point feet stands on one of them: the force determines how the
        momentum changes, and with it the motion of base and swinging leg together.
        """
        return self.on_soles or len(self.feet) == 2

    @property
    def has_pivots(self) -> bool:
        """Whether the legs cannot turn soles about the vertical axis, so that the robot turns on their ends."""
        return any(foot.pivot is not None for foot in self.feet)

    @property
    def balances_on_soles(self) -> bool:
        """Whether moments of soles balance the robot between touchdowns, and steps alone otherwise."""
        return self.on_soles and not self.has_pivots

    def turning(self, yaw_rate: Any) -> Any:
        """Return 1 if a single point of each foot is to carry the robot because it turns, 0 if all are, or between.

        Args:
            yaw_rate: Commanded, [rad/s].
        """
        return np.minimum(np.abs(yaw_rate) * self.time_unit / _TURNING, 1.0) if self.has_pivots else 0.0

    @property
    def pivot(self) -> float:
        """Height over the center of mass of the point about which a body that moves over its feet has no momentum, [m].

        At a velocity u over feet at rest the legs turn back. The angular momentum is - sum of A_i u about the center of
        mass, and zero about this point. The height is zero for robots whose base is planned.
        """
        A = self.leg_inertias.sum(axis=0)
        return float(A[0, 1] - A[1, 0]) / (2.0 * self.robot.mass) if self.plans_average else 0.0

    def lean(self, q: Array) -> Array:
        """Return the average rotation by the joints outside the legs from the posture, (3,), [rad], base axes.

        It is the integral of their share of the average angular velocity, I^-1 sum of A_k (q_k - posture_k) with the
        angular momentum A_k of the standing robot per velocity of a joint, and zero if the rotation of the base is
        planned. A base that stays level with a waist that bends leans by this angle.

        Args:
            q: Configuration, (nq,).
        """
        if not self.plans_average:
            return np.zeros(3)
        return self._upper_body @ (q[self.robot.base.nq :] - self.posture)

    @cached_property
    def _upper_body(self) -> Array:
        """Average angular velocity of the standing robot per velocity of each joint, zero in legs, (3, nj)."""
        robot = self.robot
        base = robot.base.configuration(np.array([0.0, 0.0, self.height]), np.eye(3))
        A = momentum_matrix(robot, np.concatenate([base, self.posture]))[:, robot.base.nv :]
        about = A[:3] - self.pivot * np.array([-A[4], A[3], 0.0 * A[5]])
        acceleration = np.linalg.solve(self.inertia, about)
        acceleration[:, [k for foot in self.feet for k in foot.columns]] = 0.0
        return acceleration

    @property
    def time_unit(self) -> float:
        """sqrt(h / g), [s]."""
        return float(np.sqrt(self.height / self.gravity))

    def plan(
        self,
        body: BodyState,
        reference: BodyReference,
        state: GaitState,
        feet: FeetMotion,
        friction: Any,
        guess: Array,
    ) -> Plan:
        """Return the contact forces of the next steps and the acceleration of the body.

        Args:
            body: The present motion. reference: The desired motion. state: State of the gait.
            feet: Present and desired motion of the feet.
            friction: Coefficient of friction.
            guess: Costates of the last plan, (N, 6), [N/m, N], world axes.
        """
        h = np.minimum(_STEP * self.time_unit, _SHARE * state.period)
        ends = [reference.after((k + 1.0) * h) for k in range(HORIZON)]
        arms, active, supported = self._contact_points(body, reference, state, feet, h)
        points = [axes[:, 2] for foot, axes in zip(self.feet, feet.axes, strict=True) for _ in foot.points]
        turn, zero = reference.yaw_rate, 0.0 * reference.yaw_rate
        turns = [(np.stack([zero, zero, (k + 1.0) * h * turn]), np.stack([zero, zero, turn])) for k in range(HORIZON)]
        velocity = _VELOCITY_ON_SOLES if self.balances_on_soles else _VELOCITY
        if self.plans_average:
            turns = self._with_legs(turns, reference, state, feet, h)
        weights = suited_weights(
            self.robot.mass, self.height, self.gravity, len(points), position=_POSITION, velocity=velocity
        )
        jumps = False if reference.jump is None else reference.jump.acts
        stiff = np.array([1.0, 1.0, where(jumps, _JUMP_STIFFNESS, 1.0)])
        problem = Problem(
            position=body.position,
            velocity=body.velocity,
            orientation=rotation_error(body.rotation @ reference.rotation.T) + body.lean,
            angular_velocity=body.angular_velocity,
            positions=np.array([position for position, _ in ends]),
            velocities=np.array([velocity for _, velocity in ends]),
            orientations=np.array([angle for angle, _ in turns]),
            angular_velocities=np.array([rate for _, rate in turns]),
            mass=self.robot.mass,
            inertia=body.rotation @ self.inertia @ body.rotation.T,
            gravity=self.robot.gravity,
            arms=arms,
            normals=np.array([points] * HORIZON),
            active=active,
            supported=supported,
            friction=friction,
            most=np.inf,
            weights=replace(weights, position=stiff * weights.position, velocity=stiff * weights.velocity),
            time_step=h,
        )
        return predictive_control(problem, guess, _ITERATIONS)

    def _with_legs(
        self, turns: list[tuple[Array, Array]], reference: BodyReference, state: GaitState, feet: FeetMotion, h: float
    ) -> list[tuple[Array, Array]]:
        """Return rotation vectors and average angular velocities with which the base, not the average, is to move.

        About the pivot the angular momentum is I omega + sum of A_i u_i with the angular velocity omega of the base and
        the velocity u_i of each foot, so that the average angular velocity exceeds omega by I^-1 times the sum.

        Args:
            turns: (rotation vector, [rad], angular velocity, [rad/s]) of the base at the end of each step, (3,) each.
            reference: As in `plan`. state: As in `plan`. feet: As in `plan`. h: Duration of a step, [s].
        """
        R, factors = reference.rotation, factor_symmetric(self.inertia)
        legs = [np.array([solve_factored(factors, column) for column in A.T]).T for A in self.leg_inertias]

        def moved(time: Any) -> tuple[Array, Array]:
            total, rate = np.zeros(3), np.zeros(3)
            rows = zip(legs, feet.places, feet.footsteps, state.swings_after(time), strict=True)
            for leg, start, end, ((s1, ds1), (s2, ds2)) in rows:
                first, second = end - start, reference.velocity * state.period
                total = total + leg @ (R.T @ (first * s1 + second * s2))
                rate = rate + leg @ (R.T @ (first * ds1 + second * ds2))
            return R @ total, R @ rate

        begin = moved(0.0)[0]
        targets = []
        for k, (angle, rate) in enumerate(turns):
            own, its_rate = moved((k + 1.0) * h)
            targets.append((angle + own - begin, rate + its_rate))
        return targets

    def _contact_points(
        self, body: BodyState, reference: BodyReference, state: GaitState, feet: FeetMotion, h: float
    ) -> tuple[Array, Array, Array]:
        """Return arms, (N, m, 3), and activity, (N, m), of the m contact points, and supported, (N,), of `Problem`."""
        arms, active, start = [], [], reference.after(0.0)[0]
        stances, supported = stance_shares(state, h, HORIZON)
        delay = where(state.waited > 0.0, h, 0.0)
        lift_offs, now = [left + delay for left in state.time_to_lift_off], state.stance
        for k, stands in enumerate(stances):
            middle = (k + 0.5) * h
            moved = reference.after(middle)[0] - start
            center = body.position + np.array([moved[0], moved[1], self.pivot])
            row, fractions = [], []
            for i, foot in enumerate(self.feet):
                stays = (now[i] > 0.5) & (lift_offs[i] > k * h)
                place = where(stays, feet.positions[i], feet.footsteps[i])
                carrying = feet.carrying[i]
                for offset, share in zip(foot.offsets, carrying.shares, strict=True):
                    arm = reference.rotation @ (offset - carrying.end)
                    row.append(place + arm - center if foot.is_flat else place - center)
                    fractions.append(share * stands[i])
            arms.append(row)
            active.append(fractions)
        return np.array(arms), np.array(active), np.stack(supported)

    def torques(
        self,
        model: WholeBodyModel,
        plan: Plan,
        reference: BodyReference,
        feet: FeetMotion,
        friction: Any,
        start: Array,
        hands: Sequence[Task] = (),
        arms: Sequence[int] = (),
    ) -> Result:
        """Return the joint torques that follow the plan and move the feet.

        Args:
            model: The robot at its present state. plan: The plan.
            reference: The desired motion of the body.
            feet: Present and desired motion of the feet.
            friction: Coefficient of friction.
            start: Iterate of the last call, (m,), mixed units.
            hands: Tasks of hands. The rows of each have entries of one chain of joints.
            arms: Joints that these tasks determine.
        """
        contacts, tasks = self._program(model, plan, reference, feet, friction, arms)
        return whole_body(model, contacts, [*tasks, *hands], self.limits, start)

    @lru_cache(maxsize=16)  # noqa: B019  # of as many planners, whose laws start often in a study
    def iterate_size(self) -> int:
        """Return the length of the iterate of `torques`."""
        base = self.robot.base.configuration(np.array([0.0, 0.0, self.base_height]), np.eye(3))
        q = np.concatenate([base, self.posture])
        count, n = len(self.feet), sum(len(foot.points) for foot in self.feet)
        model = WholeBodyModel(self.robot, q, np.zeros(self.robot.nv))
        zero, one, level = np.zeros(3), [1.0] * count, np.eye(3)
        plan = Plan(np.zeros((HORIZON, n, 3)), np.zeros((HORIZON, 6)), np.zeros((HORIZON, 6)), zero, zero, 0.0, 0.0)
        feet = FeetMotion(
            *([zero] * count, one, one, [Swing(zero, zero, zero)] * count, [zero] * count, [zero] * count),
            *([level] * count, one),
            [foot.carrying(0.0, level, level[2]) for foot in self.feet],
        )
        still = Sway(0.0, np.zeros((0, 2)), np.zeros((0, 2)))
        reference = BodyReference(zero, zero, np.eye(3), 0.0, np.array([1.0, 0.0]), still)
        contacts, tasks = self._program(model, plan, reference, feet, 0.5)
        return whole_body_program(model, contacts, tasks, self.limits, 1.0)[0].iterate_size

    def _program(
        self,
        model: WholeBodyModel,
        plan: Plan,
        reference: BodyReference,
        feet: FeetMotion,
        friction: Any,
        arms: Sequence[int] = (),
    ) -> tuple[list[Contact], list[Task]]:
        """Return the contacts and tasks of whole-body control; arguments as in `torques`."""
        w = 1.0 / self.time_unit
        linear = Tracking(acceleration=plan.acceleration, gains=(0.0, 0.0))
        angular = Tracking(acceleration=plan.angular_acceleration, gains=(0.0, 0.0), weight=self.rotation_weight)
        weights = np.full(self.robot.nj, _OTHERS)
        weights[[*(k for foot in self.feet for k in foot.columns), *arms]] = _DETERMINED
        still = Tracking(gains=(_POSTURE**2 * w * w, 2 * _POSTURE * w), weight=weights, level=1)
        contacts: list[Contact] = []
        tasks = [center_of_mass_position(model, np.zeros(3), linear), posture(model, self.posture, still)]
        if self.plans_average:
            R = model.point(0).rotation
            turn, zero = reference.yaw_rate, 0.0 * reference.yaw_rate
            base = Tracking(
                np.stack([zero, zero, turn]), 0.0, (_BASE**2 * w * w, 2 * _BASE * w), _BASE_WEIGHT * self.height**2
            )
            tasks.append(average_angular_velocity(model, R @ self.inertia @ R.T, angular, self.pivot))
            tasks.append(link_orientation(model, 0, reference.rotation, base))
        else:
            tasks.append(link_orientation(model, 0, np.eye(3), angular))
        speed = _SEARCH_ON_SOLES if self.on_soles else _SEARCH
        down = np.array([0.0, 0.0, -speed * np.sqrt(self.gravity * self.height)])
        gains, flat = (_FOOT**2 * w * w, 2 * _FOOT * w), _CLOSE_FOOT if self.follows_closely else _FLAT_FOOT
        free = (flat if self.balances_on_soles else 1.0) if self.on_soles else _POINT_FOOT
        rows = zip(self.feet, feet.carrying, feet.contact, feet.stance, feet.swings, feet.axes, strict=True)
        moving = zip(feet.progress, feet.released or [0.0] * len(self.feet), strict=True)
        for (foot, carrying, touches, stands, swing, axes), (progress, released) in zip(rows, moving, strict=True):
            weight = where(stands > 0.5, _LATE_FOOT, free) * (1.0 - touches)
            for (link, _), point, share in zip(foot.points, carrying.points, carrying.shares, strict=True):
                force = plan.forces[0][len(contacts)]
                contacts.append(Contact(link, point, share * touches, friction, axes, force, damping=4.0 * w))
            now = model.point(foot.link, carrying.center).position
            path, search = (swing.position, swing.velocity, swing.acceleration), (now, down, np.zeros(3))
            position, velocity, acceleration = (where(stands > 0.5, x, y) for x, y in zip(search, path, strict=True))
            more = where(stands > 0.5, 0.0, 1.0 - free) * (1.0 - touches)
            shares = path_weights(swing, progress, self.on_soles, self.follows_closely)
            along, upward = (weight + more * x for x in shares)
            tracking = Tracking(velocity, acceleration, gains, np.stack([along, along, upward]))
            tasks.append(point_position(model, foot.link, carrying.center, position, tracking))
            if foot.is_flat:
                level_share = where(stands > 0.5, 1.0, _LIFTED + (1.0 - _LIFTED) * progress * progress)
                leveling = level_share * weight
                if foot.pivot is not None:
                    leveling = np.maximum(leveling, carrying.held)
                tracking = Tracking(gains=gains, weight=leveling * foot.turn_weights)
                desired = foot.link, axes @ carrying.tilt @ foot.rotation
                level = link_orientation(model, *desired, tracking)
                level = self.limits.within_range(level, model, *desired, foot.ankle, released)
                if len(foot.turns) < 3:  # the leg cannot turn the foot about all axes
                    turns = foot.turns @ axes.T
                    level = level._replace(A=turns @ level.A, b=turns @ level.b)
                tasks.append(level)
        return contacts, tasks


def body_state(model: WholeBodyModel, q: Array, v: Array, planner: MotionPlanner) -> BodyState:
    """Return the present motion of the body.

    Args:
        model: The robot at q and v. q: Configuration, (nq,). v: Velocity, (nv,). planner: Says what is planned.
    """
    robot, spin, total = planner.robot, model.point(0).twist[:3], momentum(planner.robot, q, v)
    R = robot.base.pose(q[: robot.base.nq])[0]
    if planner.plans_average:
        arm = np.array([0.0, 0.0, planner.pivot])
        spin = solve_symmetric(R @ planner.inertia @ R.T, total[:3] - cross(arm, total[3:]))
    return BodyState(center_of_mass(robot, q), total[3:] / robot.mass, R, spin, R @ planner.lean(q))
