"""`PlanarBalance`: the linear model by which the controllers of this package balance a planar robot on a point.

The robot pivots about a support point; its angular momentum about the support is L, its mass m, the center of mass at
(c_x, c_z) from the support. q1 is the rotation about the support, q2 a motion of the joints that the user chooses for
balancing, and a prime a time derivative. With the inertia matrix H in these coordinates and the Jacobian X of c_x,

    L   = H11 q1' + H12 q2' + ...              L'  = s m g c_x
    L'' = s m g c_x'                           c_x' = X1 q1' + X2 q2' + ...
    q2' = Y1 L + Y2 L'' + Y3                   Y2 = 1 / (s m g G_v),   Y1 = -Y2 / T_c^2

with the velocity gain G_v = X2 - X1 H12 / H11, the time constant of toppling T_c = sqrt(H11 / (m g c_z)), and s = 1
where a positive rotation moves the mass to +x, otherwise -1. Y3 is the effect of the robot's other motions, the omitted
terms. `PlanarBalance.state` returns L, its derivatives and the parameters Y of the plant, which `control.py` uses for
feedback; `equations` returns H, X and the bias forces, by which it converts accelerations of q2 to torques.
`controllers.balance.spatial` uses `BalancePlant` for each of its two planes.

Source: Featherstone 2015, ISRR, "A new simple model of balancing in the plane"; 2017, IJRR, "A simple model of
balancing in the plane and a simple preview balance controller". Their symbols are reconstructed from the abstracts, and
the plant is derived again here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from legged import arguments
from legged.algorithms.inverse_kinematics import center_of_mass_jacobian
from legged.checked import checked
from legged.dynamics.frames import frame_acceleration, frame_jacobian, frame_pose
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum_rate
from legged.errors import ArgumentError, DefinitionError, ShapeError
from legged.robot.base import FixedBase, PlanarBase
from legged.robot.robot import Robot
from legged.spatial import Array

_LEAST_INVERSE_SQUARE = 1e-12  # [1/s^2], of time constants, which are at most 1e6 s


class BalancePlant(NamedTuple):
    """The plant q2' = Y1 L + Y2 L'' of a balancing motion.

    Attributes:
        Y1, Y2: Its parameters. gain: Velocity gain G_v, change of c_x' per unit of q2', [m] or 1.
        time_constant: T_c, [s]; 1e6 where the center of mass is not above the support.
    """

    Y1: Any
    Y2: Any
    gain: Any
    time_constant: Any

    @classmethod
    def of(cls, weight: Any, velocity_per_momentum: Any, gain: Any) -> BalancePlant:
        """Return the plant of c_x' = C L + G_v q2', L' = s m g c_x, solved for q2'.

        Args:
            weight: s m g, [N]. velocity_per_momentum: C, in the plane X1 / H11, [1/(kg m)]. gain: G_v, [m] or 1.
        """
        C = velocity_per_momentum
        time_constant = 1.0 / np.sqrt(np.maximum(weight * C, _LEAST_INVERSE_SQUARE))
        return cls(-C / gain, 1.0 / (weight * gain), gain, time_constant)


class PlanarState(NamedTuple):
    """The state of balance of a planar robot on its support point.

    Attributes:
        L: Angular momentum about the support, [kg m^2/s], positive for a positive rotation of the pivot.
        L1, L2: Its first and second time derivatives, [N m], [N m/s].
        q2, q2_rate: Balancing motion from its zero, [rad] or [m], and its rate.
        Y1, Y2, Y3: The plant, q2' = Y1 L + Y2 L'' + Y3.
        gain: Velocity gain G_v, change of c_x' per unit of q2', [m] or 1.
        time_constant: T_c, [s]; 1e6 where the center of mass is not above the support.
    """

    L: Any
    L1: Any
    L2: Any
    q2: Any
    q2_rate: Any
    Y1: Any
    Y2: Any
    Y3: Any
    gain: Any
    time_constant: Any


class ReducedEquations(NamedTuple):
    """Equations in the coordinates [rotation about the support; joints]: H r'' + h = [0; torques].

    Attributes:
        v: The rates r', (n,). N: Their directions in v, (nv, n). H: Inertia matrix, (n, n). h: Bias forces, (n,).
        X: c_x' = X r', (n,), [m]. X_rate: Rate of c_x' at r'' = 0, [m/s^2]. c: Center of mass from the support, (3,).
    """

    v: Array
    N: Array
    H: Array
    h: Array
    X: Array
    X_rate: Any
    c: Array


@checked
@dataclass(frozen=True, eq=False)
class PlanarBalance:
    """The balance model of a planar robot on a point.

    Attributes:
        robot: A robot whose motion stays in the world's x-z plane: on a fixed base whose first joint, without a motor,
            is the pivot, or on a `legged.PlanarBase` that stands on one contact point.
        motion: The balancing motion: the rate of each joint per unit of q2', by name.
        contact: Name of the contact point that it stands on; None for a pivot joint.
        zero: Joint positions at which q2 is zero, by name; zero where none is given, [rad] or [m].

    Raises:
        DefinitionError: The robot has another base, or no gravity.
        UnknownNameError: The robot lacks a joint or the contact point.
        ArgumentError: `motion` moves no joint, or `motion` or `zero` names the pivot.
    """

    robot: Robot
    motion: Mapping[str, float]
    contact: str | None = None
    zero: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        robot = self.robot
        joints = {joint.name: joint for joint in robot.joints}
        expected = FixedBase if self.contact is None else PlanarBase
        if not isinstance(robot.base, expected):
            raise DefinitionError(
                f"a planar robot that balances on {'a contact point' if self.contact else 'a pivot joint'} has a "
                f"{expected().kind} base; robot {robot.name!r} has a {robot.base.kind} base"
            )
        if robot.gravity.dtype != object and not robot.gravity.any():
            raise DefinitionError(f"robot {robot.name!r} has no gravity; give it gravity, against which it can balance")
        if self.contact is not None:
            arguments.known_name("contact point", self.contact, [contact.name for contact in robot.contacts])
        if not self.motion or not any(self.motion.values()):
            raise ArgumentError("motion must name at least one joint with a rate other than zero")
        for name in (*self.motion, *self.zero):
            arguments.known_name("joint", name, joints)
            if self.contact is None and joints[name] is robot.joints[0]:
                raise ArgumentError(f"joint {name!r} is the pivot, which has no motor; leave it out of motion and zero")

    @property
    def mass(self) -> float:
        """The moving mass, [kg], without that of a fixed base."""
        return self.robot.mass - (self.robot.bodies[0].moments.mass if self.contact is None else 0.0)

    @property
    def joint_columns(self) -> slice:
        """The entries of v that belong to joints with motors."""
        return slice(self.robot.base.nv if self.contact is not None else 1, self.robot.nv)

    @property
    def direction(self) -> Array:
        """The balancing motion as rates of the joints with motors per unit of q2', (n - 1,)."""
        return self._of_motors(self.motion)

    @property
    def joint_zero(self) -> Array:
        """Positions of the joints with motors at q2 = 0, (n - 1,)."""
        return self._of_motors(self.zero)

    def _of_motors(self, values: Mapping[str, float]) -> Array:
        """Return values by joint name for the joints with motors, (n - 1,), zero where none is given."""
        entries = np.zeros(self.robot.nv)
        for joint in self.robot.joints:
            entries[joint.v] = values.get(joint.name, 0.0)
        return entries[self.joint_columns]

    def joint_positions(self, q: Array) -> Array:
        """Return the positions of the joints with motors, (n - 1,), [rad] or [m].

        Args:
            q: Configuration, (nq,).
        """
        if np.shape(q) != (self.robot.nq,):
            raise ShapeError(f"q must be ({self.robot.nq},), one entry per coordinate, got shape {np.shape(q)}")
        return q[self.robot.nq - self.robot.nv :][self.joint_columns]

    def state(self, q: Array, v: Array) -> PlanarState:
        """Return the state of balance; the function can be traced.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,); the support point is at rest.
        """
        return self.state_of(q, self.equations(q, v))

    def state_of(self, q: Array, at: ReducedEquations) -> PlanarState:
        """Return the state of balance; the joint rates are the sum of a q2', a = `direction`, and rates normal to a.

        Args:
            q: Configuration, (nq,). at: Its equations of motion.
        """
        a, weight = self.direction, self.weight
        joint_rates = at.v[1:]
        q2_rate = a @ joint_rates / (a @ a)
        other_rates = joint_rates - a * q2_rate
        H11, H12, X1, X2 = at.H[0, 0], at.H[0, 1:] @ a, at.X[0], at.X[1:] @ a
        plant = BalancePlant.of(weight, X1 / H11, X2 - X1 * H12 / H11)
        disturbance = (at.X[1:] - at.H[0, 1:] * (X1 / H11)) @ other_rates  # of c_x'
        q2 = a @ (self.joint_positions(q) - self.joint_zero) / (a @ a)
        return PlanarState(
            L=at.H[0] @ at.v,
            L1=weight * at.c[0],
            L2=weight * (at.X @ at.v),
            q2=q2,
            q2_rate=q2_rate,
            Y1=plant.Y1,
            Y2=plant.Y2,
            Y3=-disturbance / plant.gain,
            gain=plant.gain,
            time_constant=plant.time_constant,
        )

    @property
    def weight(self) -> float:
        """s m g, [N], so that L' = s m g c_x."""
        return self.sign * self.mass * float(np.linalg.norm(self.robot.gravity))

    @property
    def sign(self) -> float:
        """s: 1 if a positive rotation about the support moves a mass above it to +x, otherwise -1."""
        if self.contact is not None:
            return 1.0
        joint = self.robot.joints[0]
        axis = frame_jacobian(self.robot, self.robot.neutral(), joint.child)[1, 0]
        if abs(abs(axis) - 1.0) > 1e-9:
            raise DefinitionError(f"the pivot {joint.name!r} must turn about the world's y axis, normal to the plane")
        return float(np.sign(axis))

    def equations(self, q: Array, v: Array) -> ReducedEquations:
        """Return the equations of motion about the support point, which is at rest; the function can be traced.

        With v = N r and vdot = N r'' + drift, the equations of motion M vdot + h_v = tau become those of r after a
        multiplication by N^T from the left. A contact point stays at rest if drift is minus its acceleration at
        vdot = 0, in the entries of the base's position.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,).
        """
        robot, n = self.robot, self.robot.nv
        N, drift = self._directions(q), np.zeros(n)
        if self.contact is not None:
            contact = frame_acceleration(robot, q, v, np.zeros(n), self.contact)[3:]
            zero = 0.0 * contact[0]  # an expression in a trace, as the other entries
            drift = np.stack([zero, -contact[0], -contact[2], *[zero] * (n - 3)])
        M = inertia_matrix(robot, q)
        J_c = center_of_mass_jacobian(robot, q) * (robot.mass / self.mass)
        acceleration = momentum_rate(robot, q, v, drift)[3:] / self.mass
        rates = v if self.contact is None else np.concatenate([v[:1], v[3:]])
        bias = bias_forces(robot, q, v) + M @ drift
        return ReducedEquations(rates, N, N.T @ M @ N, N.T @ bias, (J_c @ N)[0], acceleration[0], self.center(q))

    def reduced_inertia(self, q: Array) -> Array:
        """Return the inertia matrix H of `equations`, (n, n); the function can be traced.

        Args:
            q: Configuration, (nq,).
        """
        N = self._directions(q)
        return N.T @ inertia_matrix(self.robot, q) @ N

    def _directions(self, q: Array) -> Array:
        """Return N, (nv, n): the velocities for unit rates about the support point, which is at rest, and of joints.

        On a contact point the position of the base, entries 1 and 2 of v, follows from the other rates.
        """
        n = self.robot.nv
        if self.contact is None:
            return np.eye(n)
        J = frame_jacobian(self.robot, q, self.contact)[3:]
        columns = [0, *range(3, n)]
        rows, identity = [-J[0, columns], -J[2, columns]], np.eye(len(columns))
        return np.stack([identity[0], rows[0], rows[1], *identity[1:]])

    def center(self, q: Array) -> Array:
        """Return the center of the moving mass from the support point, (3,), [m], world axes.

        Args:
            q: Configuration, (nq,).
        """
        robot, fixed, support = self.robot, self.robot.bodies[0].moments.h, np.zeros(3)
        if self.contact is not None:
            fixed, support = np.zeros(3), frame_pose(robot, q, self.contact).position
        return (robot.mass * center_of_mass(robot, q) - fixed) / self.mass - support

    def balanced(self, positions: Array) -> Array:
        """Return the configuration, (nq,), with the center of mass above the support, for given joint positions.

        The position of a planar base is 0. The function can be traced.

        Args:
            positions: Positions of the joints with motors, (n - 1,), [rad] or [m].
        """
        columns = self.joint_columns
        positions = arguments.rounded_array("positions", positions, (columns.stop - columns.start,))
        rest = np.zeros(self.robot.nq - len(positions) - 1)
        c = self.center(np.concatenate([[0.0], rest, positions]))
        lean = -self.sign * np.arctan2(c[0], c[2])
        return np.concatenate([np.stack([lean]), rest, positions])
