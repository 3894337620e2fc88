"""Balance of a planar robot on a point: a model with two parameters, and a controller that follows commands with it.

The robot pivots about a support point; its angular momentum about the support is L, its mass m, the center of mass at
(c_x, c_z) from the support. One chosen balancing motion q2 of its joints and the rotation q1 about the support give

    L   = H11 q1' + H12 q2' + ...              L'  = s m g c_x
    L'' = s m g c_x'                           c_x' = X1 q1' + X2 q2' + ...
    q2' = Y1 L + Y2 L'' + Y3                   Y2 = 1 / (s m g G_v),   Y1 = -Y2 / T_c^2

with the velocity gain G_v = X2 - X1 H12 / H11, the time constant of toppling T_c = sqrt(H11 / (m g c_z)), and s = 1
where a positive rotation moves the mass to +x. Y3 is the effect of the robot's other motions, the omitted terms.

Source: Featherstone 2015, ISRR, "A new simple model of balancing in the plane"; 2017, IJRR, "A simple model of
balancing in the plane and a simple preview balance controller". Their symbols and laws are reconstructed from the
abstracts and derived again here: the plant from the equations above, the gains from the poles of the closed loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from legged import arguments
from legged.algorithms.inverse_kinematics import center_of_mass_jacobian
from legged.checked import checked
from legged.compiler import where
from legged.dynamics.frames import frame_acceleration, frame_jacobian, frame_pose
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum_rate
from legged.errors import ArgumentError, DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array

Command = Callable[[Any], Any]
"""The commanded balancing motion: q2 in rad or m as a function of time in s; it may be traced."""

_SLOWEST = 1e-12  # [1/s^2], the inverse square of the longest time constant
_NODES, _WEIGHTS = np.polynomial.laguerre.laggauss(24)


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


class _Reduced(NamedTuple):
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
    """

    robot: Robot
    motion: Mapping[str, float]
    contact: str | None = None
    zero: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        robot = self.robot
        joints = {joint.name: joint for joint in robot.joints}
        expected = "planar" if self.contact is not None else "fixed"
        if robot.base.kind != expected:
            raise DefinitionError(
                f"a planar robot that balances on {'a contact point' if self.contact else 'a pivot joint'} has a "
                f"{expected} base; robot {robot.name!r} has a {robot.base.kind} base"
            )
        if self.contact is not None:
            arguments.known_name("contact point", self.contact, [contact.name for contact in robot.contacts])
        if not self.motion or not any(self.motion.values()):
            raise ArgumentError("motion must name at least one joint with a rate other than zero")
        for name in (*self.motion, *self.zero):
            arguments.known_name("joint", name, joints)
            if self.contact is None and joints[name] is robot.joints[0] and name in self.motion:
                raise ArgumentError(f"joint {name!r} is the pivot, which has no motor; take another for the motion")

    @property
    def mass(self) -> float:
        """The moving mass, [kg], without that of a fixed base."""
        return self.robot.mass - (self.robot.bodies[0].moments.mass if self.contact is None else 0.0)

    @property
    def _fixed_moment(self) -> Array:
        """First moment of the fixed base's mass, (3,), [kg m], world axes."""
        return self.robot.bodies[0].moments.h if self.contact is None else np.zeros(3)

    @property
    def joint_columns(self) -> slice:
        """The entries of v that belong to joints with motors."""
        return slice(self.robot.base.nv if self.contact is not None else 1, self.robot.nv)

    @property
    def direction(self) -> Array:
        """The balancing motion as rates of the joints with motors per unit of q2', (n - 1,)."""
        rates = np.zeros(self.robot.nv)
        for joint in self.robot.joints:
            rates[joint.v] = self.motion.get(joint.name, 0.0)
        return rates[self.joint_columns]

    @property
    def joint_zero(self) -> Array:
        """Positions of the joints with motors at q2 = 0, (n - 1,)."""
        positions = np.zeros(self.robot.nv)
        for joint in self.robot.joints:
            positions[joint.v] = self.zero.get(joint.name, 0.0)
        return positions[self.joint_columns]

    def joint_positions(self, q: Array) -> Array:
        """Return the positions of the joints with motors, (n - 1,), [rad] or [m].

        Args:
            q: Configuration, (nq,).
        """
        return q[self.robot.nq - self.robot.nv :][self.joint_columns]

    def state(self, q: Array, v: Array) -> PlanarState:
        """Return the state of balance; the function can be traced.

        Args:
            q: Configuration, (nq,). v: Velocity, (nv,); the support point is at rest.
        """
        return self._state(q, self._reduced(q, v))

    def _state(self, q: Array, at: _Reduced) -> PlanarState:
        a, s = self.direction, self._sign
        weight = self.mass * np.linalg.norm(self.robot.gravity)
        rates = at.v[1:]
        q2_rate = a @ rates / (a @ a)
        other = rates - a * q2_rate
        H11, H12, X1, X2 = at.H[0, 0], at.H[0, 1:] @ a, at.X[0], at.X[1:] @ a
        gain = X2 - X1 * H12 / H11
        time_constant = 1.0 / np.sqrt(np.maximum(weight * at.c[2] / H11, _SLOWEST))
        Y2 = 1.0 / (s * weight * gain)
        disturbance = (at.X[1:] - at.H[0, 1:] * (X1 / H11)) @ other
        q2 = a @ (self.joint_positions(q) - self.joint_zero) / (a @ a)
        return PlanarState(
            L=at.H[0] @ at.v,
            L1=s * weight * at.c[0],
            L2=s * weight * (at.X @ at.v),
            q2=q2,
            q2_rate=q2_rate,
            Y1=-X1 / (H11 * gain),
            Y2=Y2,
            Y3=-disturbance / gain,
            gain=gain,
            time_constant=time_constant,
        )

    @property
    def _sign(self) -> float:
        """s: 1 if a positive rotation about the support moves a mass above it to +x."""
        if self.contact is not None:
            return 1.0
        joint = self.robot.joints[0]
        axis = frame_jacobian(self.robot, self.robot.neutral(), joint.child)[1, 0]
        if abs(abs(axis) - 1.0) > 1e-9:
            raise DefinitionError(f"the pivot {joint.name!r} must turn about the world's y axis, normal to the plane")
        return float(np.sign(axis))

    def _reduced(self, q: Array, v: Array) -> _Reduced:
        robot, n = self.robot, self.robot.nv
        N, support, drift = np.eye(n), np.zeros(3), np.zeros(n)
        if self.contact is not None:
            J = frame_jacobian(robot, q, self.contact)[3:]
            support = frame_pose(robot, q, self.contact).position
            at_rest = frame_acceleration(robot, q, v, np.zeros(n), self.contact)[3:]
            columns = [0, *range(3, n)]
            rows = [-J[0, columns], -J[2, columns]]
            identity = np.eye(len(columns))
            N = np.stack([identity[0], rows[0], rows[1], *identity[1:]])
            zero = 0.0 * at_rest[0]
            drift = np.stack([zero, -at_rest[0], -at_rest[2], *[zero] * (n - 3)])
        M = inertia_matrix(robot, q)
        J_c = center_of_mass_jacobian(robot, q) * (robot.mass / self.mass)
        acceleration = momentum_rate(robot, q, v, drift)[3:] / self.mass
        rates = v if self.contact is None else np.concatenate([v[:1], v[3:]])
        bias = bias_forces(robot, q, v) + M @ drift
        c = (robot.mass * center_of_mass(robot, q) - self._fixed_moment) / self.mass - support
        return _Reduced(rates, N, N.T @ M @ N, N.T @ bias, (J_c @ N)[0], acceleration[0], c)


class BalanceGains(NamedTuple):
    """Gains of the four-term law L''' = -k_dd L'' - k_d L' - k_L L - k_q (q2 - u)."""

    k_dd: Any
    k_d: Any
    k_L: Any
    k_q: Any

    @classmethod
    def of(cls, pole: Any, Y1: Any, Y2: Any) -> BalanceGains:
        """Return the gains that put all four poles of the closed loop at -pole.

        s^4 + k_dd s^3 + (k_d + k_q Y2) s^2 + k_L s + k_q Y1 = (s + p)^4

        Args:
            pole: p, [1/s]. Y1, Y2: The plant.
        """
        k_q = pole**4 / Y1
        return cls(4.0 * pole, 6.0 * pole**2 - k_q * Y2, 4.0 * pole**3, k_q)


@checked
@dataclass(frozen=True, eq=False)
class PlanarBalanceControl:
    """A controller that follows commands of the balancing motion while the robot balances on its point.

    The torques produce the L''' of the four-term law exactly: the joint accelerations follow from the pivot's equation
    of motion, which has no torque, and from L'' = s m g c_x'. All other motions of the joints follow their references.

    With `preview`, the command first passes the reverse-time filter 1 / (1 - T_c s), which uses future values of the
    command: the robot leans before a step begins. The filter cancels the plant's zero at 1 / T_c, which would move the
    robot in the wrong direction first. With the pole at 1 / T_c the response is the third-order lag 1 / (1 + T_c s)^3.

    Attributes:
        model: The robot's balance model.
        command: q2 as a function of time: a number, a function that can be traced, or `StepCommand`.
        pole: p, all four poles of the closed loop are at -p, [1/s]; 1 / T_c at the robot's upright posture for None.
        preview: Whether the command passes the reverse-time filter.
        others: References of the joints' other motions: joint name -> function of time that returns (position,
            velocity, acceleration). Joints without one stay at the model's zero, moved by the balancing motion alone.
        bandwidth: Natural frequency of the servos of these motions, critically damped, [rad/s].
        limit: Largest torque of each joint, [N m]; infinite for none.
        nominal: Model from which the controller computes, where it differs from the robot's; None for `model`.
    """

    model: PlanarBalance
    command: Any = 0.0
    pole: float | None = None
    preview: bool = True
    others: Mapping[str, Callable[[Any], tuple[Any, Any, Any]]] = field(default_factory=dict)
    bandwidth: float = 20.0
    limit: float = np.inf
    nominal: PlanarBalance | None = None

    def __post_init__(self) -> None:
        if not callable(self.command):
            arguments.number("command", self.command)
        if self.pole is not None:
            arguments.number("pole", self.pole, "1/s", above=0.0)
        arguments.number("bandwidth", self.bandwidth, "rad/s", above=0.0)
        if self.limit != np.inf:
            arguments.number("limit", self.limit, "N m", above=0.0)
        for name in self.others:
            arguments.known_name("joint", name, [joint.name for joint in self.model.robot.joints])

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (nv,), [N m] or [N]; zero at the pivot and the base.

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,). wrenches: Not used.
        """
        model = self.nominal or self.model
        at = model._reduced(q, v)
        state = model._state(q, at)
        a = model.direction
        pole = 1.0 / state.time_constant if self.pole is None else self.pole
        gains = BalanceGains.of(pole, state.Y1, state.Y2)
        desired = self._desired(t, state.time_constant)
        L3 = -gains.k_dd * state.L2 - gains.k_d * state.L1 - gains.k_L * state.L - gains.k_q * (state.q2 - desired)
        other = self._other_accelerations(t, q, at.v[1:], state)
        weight = model._sign * model.mass * np.linalg.norm(model.robot.gravity)
        # Two equations for the accelerations of pivot and balancing motion: no torque at the pivot, and L'''.
        b_1 = -at.h[0] - at.H[0, 1:] @ other
        b_2 = L3 / weight - at.X_rate - at.X[1:] @ other
        H11, H12, X1, X2 = at.H[0, 0], at.H[0, 1:] @ a, at.X[0], at.X[1:] @ a
        determinant = H11 * X2 - H12 * X1
        pivot = (X2 * b_1 - H12 * b_2) / determinant
        balancing = (H11 * b_2 - X1 * b_1) / determinant
        accelerations = np.concatenate([np.stack([pivot]), a * balancing + other])
        torques = (at.H @ accelerations + at.h)[1:]
        if self.limit != np.inf:
            torques = np.minimum(np.maximum(torques, -self.limit), self.limit)
        return np.concatenate([np.zeros(model.robot.nv - len(torques)), torques])

    def _desired(self, t: Any, time_constant: Any) -> Any:
        """Return the command at a time, through the reverse-time filter if `preview`."""
        command = self.command
        if isinstance(command, StepCommand):
            return command.previewed(t, time_constant) if self.preview else command(t)
        if not callable(command):
            return command
        if not self.preview:
            return command(t)
        quadrature = zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True)
        return sum(w * cast(Any, command(t + time_constant * x)) for x, w in quadrature)

    def _other_accelerations(self, t: Any, q: Array, rates: Array, state: PlanarState) -> Array:
        """Return the joint accelerations of the servos without the balancing motion, (n - 1,)."""
        model = self.nominal or self.model
        a = model.direction
        reference = [[0.0] * len(a) for _ in range(3)]
        for joint in model.robot.joints:
            if joint.name in self.others:
                column = joint.v.start - model.joint_columns.start
                for row, value in zip(reference, self.others[joint.name](t), strict=True):
                    row[column] = value
        position, velocity, acceleration = (np.stack([x + 0.0 * t for x in row]) for row in reference)
        error = position + model.joint_zero + a * state.q2 - model.joint_positions(q)
        rate_error = velocity + a * state.q2_rate - rates
        desired = acceleration + self.bandwidth**2 * error + 2.0 * self.bandwidth * rate_error
        return desired - a * ((a @ desired) / (a @ a))


@checked
@dataclass(frozen=True)
class StepCommand:
    """A piecewise constant command: the value `values[i]` from the time `times[i]` on, and `start` before.

    Attributes:
        times: Increasing, [s]. values: As many, [rad] or [m].
        start: Value before the first step.
    """

    times: Sequence[float]
    values: Sequence[float]
    start: float = 0.0

    def __post_init__(self) -> None:
        if len(self.times) != len(self.values) or any(np.diff(self.times) <= 0):
            raise ArgumentError("times must increase, and values must have one entry for each of them")

    def __call__(self, t: Any) -> Any:
        """Return the value at a time t, [s]."""
        before = (self.start, *self.values)
        value = self.start + 0.0 * t
        for at, old, new in zip(self.times, before, self.values, strict=False):
            value = value + where(t >= at, new - old, 0.0)
        return value

    def previewed(self, t: Any, time_constant: Any) -> Any:
        """Return the command through the reverse-time filter: steps act early, as exp((t - t_i) / T_c).

        Args:
            t: Time, [s]. time_constant: T_c, [s].
        """
        before = (self.start, *self.values)
        value = self.start + 0.0 * t
        for at, old, new in zip(self.times, before, self.values, strict=False):
            value = value + (new - old) * np.exp(np.minimum((t - at) / time_constant, 0.0))
        return value
