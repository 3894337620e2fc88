"""Walking, trotting and standing with feedback of the trunk and of foot placement."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from controllers.balance.divergent_component import DivergentComponent, Support
from controllers.balance.whole_body import (
    LegContact,
    distribute_forces,
    leg_acceleration,
    leg_contacts,
    leg_slope,
    swing_acceleration,
)
from controllers.gaits.alternating import Alternating
from controllers.gaits.foot_path import path_named
from controllers.gaits.leg import Leg
from controllers.gaits.numerical_gait import NumericalGait
from controllers.gaits.standing import Stand
from controllers.law import GaitLaw, check_gains
from legged import taylor
from legged.checked import checked
from legged.compiler.ir import where
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum, point_motion
from legged.errors import DefinitionError
from legged.ground.ground import contact_motion
from legged.robot.robot import Robot
from legged.rotations import rotation_error
from legged.spatial import Array, cross, join, mirror, solve_symmetric, sum_of

Pair = tuple[float, float]
_LEAST_TIME_LEFT = 0.1  # of a period: least time to landing that the motion of a swinging foot assumes
_STRETCH = 0.98  # of a leg's length: its largest extension in a step
_REGULARIZATION = 1e-9  # [m^2], times the squared mass, for bases without horizontal degrees of freedom
_TOUCHDOWN_DEPTH = 5e-4  # [m], depth below the support to which a swinging sole moves at the end of its phase


@checked
@dataclass(frozen=True, eq=False)
class Balanced(GaitLaw):
    """A gait with feedback of the trunk's pose and of the divergent component of motion.

    The desired acceleration of the base turns it level, keeps its height, and moves it horizontally as the inverted
    pendulum over the center of pressure that controls the divergent component of motion (`divergent_component`).
    Swinging feet land where they correct the remaining error, and standing feet do not accelerate. Joint accelerations
    follow from the Jacobians of the legs, ground forces from a minimum-norm distribution (`whole_body`), and torques
    from the equations of motion, tau = I vdot + h - J^T f. Contact forces are not measured.

    The law applies to a planar biped with flat feet, to a quadruped with point feet, and to any other gait of two
    groups of legs. With a `Stand` all feet support the robot, and the center of pressure alone keeps the center of mass
    over them. Joints of no leg keep their positions at the start of the gait. A trot can balance across its diagonal
    only by stepping, and a deviation grows by exp(omega T) per phase: use periods of 0.3 to 0.4 s for hips at 0.5 m. A
    phase that ends with a stretched leg cannot be corrected: choose a hip height that leaves the knees bent.

    Attributes:
        gait: A walk, trot, tripod gait or stand, or a `NumericalGait` of one.
        attitude: Gains of the base's orientation, [1/s^2], [1/s].
        height: Gains of the base's height over the supporting feet, [1/s^2], [1/s].
        foot: Gains of a swinging foot's height and of a flat foot's orientation, [1/s^2], [1/s].
        posture: Gains of joints that belong to no leg, [1/s^2], [1/s].
        gain, reach, tracking: See `DivergentComponent`.
    """

    gait: Alternating | Stand | NumericalGait
    attitude: Pair = (100.0, 20.0)
    height: Pair = (100.0, 20.0)
    foot: Pair = (400.0, 40.0)
    posture: Pair = (100.0, 20.0)
    gain: float = 3.0
    reach: float = 0.8
    tracking: float = 0.5
    _legs: tuple[LegContact, ...] = field(default=(), repr=False, kw_only=True)
    _home: Array = field(default_factory=lambda: np.zeros(0), repr=False, kw_only=True)
    _divergent: DivergentComponent | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_gains(self, "attitude", "height", "foot", "posture", "gain", "reach", "tracking")

    def _fitted(self, robot: Robot, q: Array, v: Array) -> Self:
        """Return the law for a robot; refuse other gaits, fixed bases and no gravity."""
        gait = _motion_of(self.gait)
        if not isinstance(gait, (Alternating, Stand)):
            raise DefinitionError(f"Balanced needs a walk, a trot, a tripod or a stand, got {type(gait).__name__}")
        if robot.base.nv == 0:
            raise DefinitionError(f"robot {robot.name!r} has a fixed base, which cannot be balanced")
        if not robot.gravity.any():
            raise DefinitionError(f"robot {robot.name!r} has no gravity; give it gravity, against which it can balance")
        law = super()._fitted(robot, q, v)
        gait = law._motion
        points, _ = contact_motion(robot, q, np.zeros(robot.nv))
        height = float(center_of_mass(robot, q)[2] - np.min(points[:, 2]))
        omega = float(np.sqrt(float(np.linalg.norm(robot.gravity)) / height))
        divergent = DivergentComponent(omega, gait.period, gait.stride, self.gain, self.reach, self.tracking)
        legs, home = leg_contacts(robot, gait.geometry), law.gait.reference(0.0, 0)[0]
        return replace(law, _legs=legs, _home=home, _divergent=divergent)

    def initial_state(self, robot: Robot) -> tuple[Array, Array]:
        """Return (q, v) at t = 0, (nq,) and (nv,): the gait's state, with zero error of the divergent component.

        The gait defines the velocity of the base. The velocity of the center of mass differs from it by the motion of
        the legs, so the base's horizontal velocity over the standing feet is corrected.
        """
        q, v = super().initial_state(robot)
        law = self._fitted(robot, q, v)
        if isinstance(law._motion, Stand):
            return q, v
        support = law._support(0, contact_motion(robot, q, v)[0])
        error, directions = law._error(0.0, q, v, support), law._base_velocities(q)
        change = np.array([law._velocity_error(q, direction) for direction in directions])
        return q, v - np.linalg.lstsq(change.T, error, rcond=None)[0] @ directions

    def torque(self, t: Any, phase: Any, q: Array, v: Array, wrenches: Array, memory: Array) -> Array:
        """Return the generalized forces, (nv,), as in `GaitLaw.torque`; `wrenches` and `memory` are not used."""
        robot, time = self.robot, t - phase * self._motion.period
        n0 = robot.base.nv
        supporting = self._supporting(phase)
        points, _ = contact_motion(robot, q, v)
        weights, support = self._contact_weights(supporting), self._support(phase, points)
        error = self._error(time, q, v, support)
        base = self._base_acceleration(q, v, support)
        if isinstance(self._motion, Stand):
            soles = [np.zeros(3)] * len(self._legs)
        else:
            following = Support.of(points, [1 - k for k in weights])
            landing = self._feedback.next_support(time, phase, error, support, following)
            soles = self._sole_accelerations(time, q, v, supporting, support, landing)
        constant: list[Any] = list(self.posture[0] * (self._home - q[robot.base.nq :]) - self.posture[1] * v[n0:])
        joint_slope: list[Any] = [np.zeros(n0)] * robot.nj
        for leg, sole in zip(self._legs, soles, strict=True):
            acceleration = leg_acceleration(robot, leg, q, v, sole, self.foot)
            for row, column in enumerate(leg.columns - n0):
                constant[column], joint_slope[column] = acceleration.constant[row], acceleration.slope[row]
        slope = np.concatenate([np.eye(n0), joint_slope])
        vdot = np.concatenate([np.zeros(n0), constant]) + slope @ base
        inertia, h = inertia_matrix(robot, q), bias_forces(robot, q, v)
        pressure = join(self._feedback.center_of_pressure(error, support), support.center[2:])
        vdot = vdot + slope @ self._pressure_acceleration(q, inertia @ slope, inertia @ vdot + h, pressure)
        tau, _ = distribute_forces(robot, q, inertia, inertia @ vdot + h, slope, weights)
        return tau

    @property
    def _motion(self) -> Alternating | Stand:
        """The planned motion of base and feet."""
        gait = _motion_of(self.gait)
        assert isinstance(gait, (Alternating, Stand))
        return gait

    @property
    def _feedback(self) -> DivergentComponent:
        assert self._divergent is not None
        return self._divergent

    def _base_velocities(self, q: Array) -> Array:
        """Return velocities, (2, nv), of a base that moves by 1 m/s along x, and along y, over standing feet."""
        robot, base, velocities = self.robot, self.robot.base, np.zeros((2, self.robot.nv))
        for velocity, direction in zip(velocities, np.eye(3)[:2], strict=True):
            velocity[: base.nv] = base.velocity(q[: base.nq], np.zeros(3), direction)
        for leg, supports in zip(self._legs, self._supporting(0), strict=True):
            if supports:
                velocities[:, leg.columns] = velocities[:, : base.nv] @ leg_slope(robot, leg, q).T
        return velocities

    def _pressure_acceleration(self, q: Array, composite: Array, tau: Array, pressure: Array) -> Array:
        """Return a change of the base's acceleration, (n0,), with which the center of pressure is the desired one.

        Ground forces have no moment about horizontal axes through the center of pressure. The moment that the motion
        needs about these axes is the generalized force of a rotation of the base with locked joints; a horizontal
        acceleration of the base makes it zero. Swinging legs thus react on the position of the base, not on its
        orientation.

        Args:
            q: Configuration, (nq,).
            composite: I d vdot / d vdot_0, (nv, n0), mixed units.
            tau: I vdot + h of the motion so far, (nv,).
            pressure: Desired center of pressure, (3,), [m], world axes.
        """
        robot, n0 = self.robot, self.robot.base.nv
        R, origin = robot.base.pose(q[: robot.base.nq])
        P = robot.base.motion_matrix(q[: robot.base.nq])
        translations = [join(np.zeros(3), axis) for axis in R[:2]]
        rotations = [join(axis, R.T @ cross(R @ axis, origin - pressure)) for axis in R[:2]]
        motions = np.array([solve_symmetric(P.T @ P, P.T @ twist) for twist in (*translations, *rotations)]).T
        translations, rotations = motions[:, :2], motions[:, 2:]
        A, moment = rotations.T @ composite[:n0] @ translations, rotations.T @ tau[:n0]
        normal = mirror(A.T @ A) + _REGULARIZATION * robot.mass**2 * np.eye(2)
        return translations @ solve_symmetric(normal, -(A.T @ moment))

    def _supporting(self, phase: Any) -> list[Any]:
        """Return 1 for each leg that supports the robot in a phase, 0 for each that swings."""
        if isinstance(self._motion, Stand):
            return [1.0] * len(self._legs)
        even = phase % 2 < 0.5
        first = self._motion.groups[0]
        return [where(even, 1.0, 0.0) if leg.leg.name in first else where(even, 0.0, 1.0) for leg in self._legs]

    def _support(self, phase: Any, points: Array) -> Support:
        supporting = self._supporting(phase)
        stances = (self._stance(leg.leg) for leg in self._legs)
        offset = sum_of(k * stance for k, stance in zip(supporting, stances, strict=True)) / sum_of(supporting)
        return Support.of(points, self._contact_weights(supporting), offset)

    def _stance(self, leg: Any) -> Array:
        """Return the stance position of a leg relative to the mean of all legs, (2,), [m]."""
        return np.array(leg.stance) - np.mean([each.stance for each in self._motion.geometry], axis=0)

    def _contact_weights(self, supporting: list[Any]) -> list[Any]:
        weights: list[Any] = [0.0] * len(self.robot.contacts)
        for leg, k in zip(self._legs, supporting, strict=True):
            for i in leg.contacts:
                weights[i] = k
        return weights

    def _error(self, t: Any, q: Array, v: Array, support: Support) -> Array:
        """Return the error of the divergent component of motion, (2,), [m]."""
        xi = center_of_mass(self.robot, q)[:2] + self._velocity_error(q, v)
        return self._feedback.error(t, xi, support)

    def _velocity_error(self, q: Array, v: Array) -> Array:
        """Return the part of `_error` that is proportional to v: the velocity of the center of mass over omega."""
        return momentum(self.robot, q, v)[3:5] / (self.robot.mass * self._feedback.omega)

    def _base_acceleration(self, q: Array, v: Array, support: Support) -> Array:
        """Return the desired vdot of the base, (n0,), which turns it level and keeps its height."""
        base = self.robot.base
        n, m = base.nq, base.nv
        R, origin = base.pose(q[:n])
        P = base.motion_matrix(q[:n])
        twist = P @ v[:m]
        angular = -self.attitude[0] * rotation_error(R) - self.attitude[1] * (R @ twist[:3])
        feedback = self.height[0] * (self._motion.base_height - (origin[2] - support.center[2]))
        vertical = feedback - self.height[1] * (R @ twist[3:])[2]
        desired = join(R.T @ angular, R[2] * vertical) - base.motion_bias(q[:n], v[:m])
        return solve_symmetric(P.T @ P, P.T @ desired)

    def _sole_accelerations(
        self, t: Any, q: Array, v: Array, supporting: list[Any], support: Support, landing: Array
    ) -> list[Array]:
        """Return the desired accelerations of the soles, (3,) each, [m/s^2], world axes; zero for supporting legs."""
        gait, robot = self._motion, self.robot
        R, origin = robot.base.pose(q[: robot.base.nq])
        soles, velocities = point_motion(robot, q, v, [(leg.link, leg.sole) for leg in self._legs])
        time_left = np.maximum(gait.period - t, _LEAST_TIME_LEFT * gait.period)
        lift = self._lift(t)
        accelerations = []
        for leg, k, sole, velocity in zip(self._legs, supporting, soles, velocities, strict=True):
            foot = np.array([sole[0], sole[1], sole[2] - support.center[2]])
            hip = (origin + R @ np.array([*leg.leg.stance, leg.leg.hip[2]]))[:2]
            target = _within(landing + self._stance(leg.leg), hip, self._largest_step(leg.leg))
            swing = swing_acceleration(foot, velocity, target, time_left, lift, self.foot)
            accelerations.append((1 - k) * swing)
        return accelerations

    def _largest_step(self, leg: Leg) -> Any:
        """Return the largest horizontal distance of a leg's foot from its hip, [m]."""
        length = _STRETCH * leg.reach
        return np.sqrt(np.maximum(length**2 - (self._motion.height - leg.sole) ** 2, 0.0))

    def _lift(self, t: Any) -> tuple[Any, Any, Any]:
        """Return the planned height of a swinging sole over the support, [m], with two derivatives."""
        s = taylor.time(t) / self._motion.period
        _, lift = path_named(self._motion.path)(s)
        height, rate, acceleration = taylor.derivatives([self._motion.clearance * lift - _TOUCHDOWN_DEPTH * s])
        return height[0], rate[0], acceleration[0]


def _motion_of(gait: Any) -> Any:
    """Return the gait that a numerical gait follows, or the gait itself."""
    return gait.gait if isinstance(gait, NumericalGait) else gait


def _within(position: Array, center: Array, radius: Any) -> Array:
    """Return the nearest position (2,), [m], within a circle."""
    arm = position - center
    distance = np.sqrt(arm @ arm + 1e-12)
    return center + arm * np.minimum(1.0, radius / distance)
