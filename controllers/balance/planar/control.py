"""Controllers of planar balance that set the third derivative of the angular momentum about the support.

The plant of `controllers.balance.planar.model` is q2' = Y1 L + Y2 L'' + Y3, with the angular momentum L, the balancing
motion q2 of the joints and the time constant T_c of toppling. A law chooses L''' from the errors of q2, L, L' and L'',
and the torques follow from the equations of motion. The commanded q2 is u.

Source: Featherstone 2015, ISRR, and 2017, IJRR, as in `controllers.PlanarBalance`; Azad and Featherstone 2016,
Autonomous Robots, "Angular momentum based balance controller for an under-actuated planar robot". The laws are
reconstructed from the abstracts: gains from the poles of the closed loop, the reference momentum from the plant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.planar.commands import StepCommand, derivatives, lagged, previewed
from controllers.balance.planar.model import PlanarBalance, PlanarState, ReducedEquations
from legged import arguments
from legged.arguments import Number
from legged.checked import checked
from legged.errors import ArgumentError
from legged.spatial import Array


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
            pole: p, [1/s]. Y1, Y2: Parameters of the plant, see `BalancePlant`.
        """
        k_q = pole**4 / Y1
        return cls(4.0 * pole, 6.0 * pole**2 - k_q * Y2, 4.0 * pole**3, k_q)


class MomentumReference(NamedTuple):
    """Reference of the angular momentum, [kg m^2/s], and its first three time derivatives."""

    L: Any = 0.0
    L1: Any = 0.0
    L2: Any = 0.0
    L3: Any = 0.0

    def tracked(self, state: PlanarState, gains: BalanceGains) -> Any:
        """Return L''' that reduces the errors of the momentum and of its derivatives, [N m/s^2].

        Args:
            state: State of balance. gains: Gains of the errors.
        """
        errors = gains.k_dd * (self.L2 - state.L2) + gains.k_d * (self.L1 - state.L1) + gains.k_L * (self.L - state.L)
        return self.L3 + errors


@dataclass(frozen=True, eq=False)
class PlanarController:
    """Base class of the controllers of planar balance: model, command, references of other joints, torque limit.

    Attributes:
        model: The robot's balance model.
        command: q2 as a function of time: a number, a function that can be traced, or `StepCommand`.
        others: References of the joints' other motions: joint name -> function of time that returns (position,
            velocity, acceleration). Joints without one stay at the model's zero, moved by the balancing motion alone.
        limit: Largest torque of each joint, [N m]; infinite for none.
        nominal: Model from which the controller computes, where it differs from the robot's; None for `model`.
    """

    model: PlanarBalance
    command: Any = 0.0
    others: Mapping[str, Callable[[Any], tuple[Any, Any, Any]]] = field(default_factory=dict)
    limit: float = np.inf
    nominal: PlanarBalance | None = None

    def __post_init__(self) -> None:
        if not callable(self.command):
            arguments.number("command", self.command)
        if self.limit != np.inf:
            arguments.number("limit", self.limit, "N m", above=0.0)
        for name in self.others:
            arguments.known_name("joint", name, [joint.name for joint in self.model.robot.joints])
            if self.model.contact is None and name == self.model.robot.joints[0].name:
                raise ArgumentError(f"joint {name!r} is the pivot, which has no motor; others must name other joints")

    @property
    def _known(self) -> PlanarBalance:
        return self.nominal or self.model

    def _commanded(self, t: Any) -> Any:
        return self.command(t) if callable(self.command) else self.command

    def _references(self, t: Any) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations of the other motions, (n - 1,) each."""
        model = self._known
        rows = [[0.0] * len(model.direction) for _ in range(3)]
        for joint in model.robot.joints:
            if joint.name in self.others:
                column = joint.v.start - model.joint_columns.start
                for row, value in zip(rows, self.others[joint.name](t), strict=True):
                    row[column] = value
        position, velocity, acceleration = (np.stack([x + 0.0 * t for x in row]) for row in rows)
        return position, velocity, acceleration

    def _forces(self, torques: Array) -> Array:
        """Return the generalized forces, (nv,), of limited joint torques, (n - 1,), [N m]."""
        if self.limit != np.inf:
            torques = np.minimum(np.maximum(torques, -self.limit), self.limit)
        return np.concatenate([np.zeros(self._known.robot.nv - len(torques)), torques])


@dataclass(frozen=True, eq=False)
class MomentumController(PlanarController):
    """A controller whose torques produce a chosen L''', while all other motions follow their references.

    The joint accelerations follow from the pivot's equation of motion, which has no torque, and from L'' = s m g c_x'.

    Attributes:
        pole: p, all four poles of the closed loop are at -p, [1/s]; 1 / T_c at the robot's posture for None.
        bandwidth: Natural frequency of the servos of the other motions, critically damped, [rad/s].
    """

    pole: float | None = None
    bandwidth: float = 20.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pole is not None:
            arguments.number("pole", self.pole, "1/s", above=0.0)
        arguments.number("bandwidth", self.bandwidth, "rad/s", above=0.0)

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (nv,), [N m] or [N]; zero at the pivot and the base.

        Args:
            t: Time, [s]. q: Configuration, (nq,). v: Velocity, (nv,). wrenches: Not used.
        """
        model = self._known
        at = model.equations(q, v)
        return self._forces(self._law(t, q, at, model.state_of(q, at)))

    def _law(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState) -> Array:
        """Return the joint torques before their limit, (n - 1,), [N m]."""
        pole = 1.0 / state.time_constant if self.pole is None else self.pole
        return self._torques(t, q, at, state, self._momentum_rate(t, q, at, state, pole))

    def _momentum_rate(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState, pole: Any) -> Any:
        """Return L''', [N m/s^2]."""
        raise NotImplementedError

    def _momentum_of(self, t: Any, command: Any) -> MomentumReference:
        """Return the momentum with which the robot follows a command, while its other motions follow their references.

        The plant is that of the balanced posture at q2 = 0, where Y3 = -(sum of G_k o_k') / G_v: the other motion o_k,
        whose velocity gain is G_k, acts as a change of the command by o_k G_k / G_v.

        Args:
            t: Time, [s]. command: Part of the command that is followed, [rad] or [m], as `command`.
        """
        model = self._known
        q = model.balanced(model.joint_zero)
        at = model.equations(q, np.zeros(model.robot.nv))
        plant = model.state_of(q, at)
        a, T, Y1 = model.direction, plant.time_constant, plant.Y1
        row = (at.X[1:] - at.H[0, 1:] * (at.X[0] / at.H[0, 0])) / plant.gain
        share = row - a * ((row @ a) / (a @ a))  # without the part of a reference along the balancing motion

        def motion(time: Any) -> Any:
            return np.asarray(derivatives(command, time)) + np.asarray(self._references(time)) @ share

        def position(time: Any) -> Any:
            return motion(time)[0]

        ahead, behind = previewed(position, t, T), lagged(position, t, T)
        u, u1, u2 = motion(t)
        L = (ahead - behind) / (2.0 * T * Y1)
        L1 = (0.5 * (ahead + behind) - u) / (T**2 * Y1)
        return MomentumReference(L, L1, (L - u1 / Y1) / T**2, (L1 - u2 / Y1) / T**2)

    def _torques(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState, L3: Any) -> Array:
        """Return the joint torques, (n - 1,), [N m]."""
        other = self._other_accelerations(t, q, at.v[1:], state)
        at_zero, slope = self._balancing_acceleration(at, other)
        return self._joint_torques(at, other, at_zero + slope * L3)

    def _balancing_acceleration(self, at: ReducedEquations, other: Array) -> tuple[Any, Any]:
        """Return q2'' = c_0 + c_1 L''', without torque at the pivot, as (c_0, c_1).

        Args:
            at: Equations of motion. other: Accelerations of the other motions, (n - 1,), [rad/s^2] or [m/s^2], joints.
        """
        model = self._known
        a = model.direction
        # Two equations for the accelerations of pivot and balancing motion: no torque at the pivot, and L'''.
        b_1 = -at.h[0] - at.H[0, 1:] @ other
        b_2 = -at.X_rate - at.X[1:] @ other
        H11, H12, X1, X2 = at.H[0, 0], at.H[0, 1:] @ a, at.X[0], at.X[1:] @ a
        determinant = H11 * X2 - H12 * X1
        return (H11 * b_2 - X1 * b_1) / determinant, H11 / (determinant * model.weight)

    def _joint_torques(self, at: ReducedEquations, other: Array, balancing: Any) -> Array:
        """Return the joint torques, (n - 1,), [N m], for q2'' and the other accelerations, without one at the pivot."""
        joints = self._known.direction * balancing + other
        pivot = -(at.h[0] + at.H[0, 1:] @ joints) / at.H[0, 0]
        return (at.H @ np.concatenate([np.stack([pivot]), joints]) + at.h)[1:]

    def _other_accelerations(self, t: Any, q: Array, rates: Array, state: PlanarState) -> Array:
        """Return the joint accelerations of the servos without the balancing motion, (n - 1,)."""
        model = self._known
        a = model.direction
        position, velocity, acceleration = self._references(t)
        error = position + model.joint_zero + a * state.q2 - model.joint_positions(q)
        rate_error = velocity + a * state.q2_rate - rates
        desired = acceleration + self.bandwidth**2 * error + 2.0 * self.bandwidth * rate_error
        return desired - a * ((a @ desired) / (a @ a))


@checked
@dataclass(frozen=True, eq=False)
class PlanarBalanceControl(MomentumController):
    """The four-term controller of 2015 and 2017: L''' = -k_dd L'' - k_d L' - k_L L - k_q (q2 - u).

    With `preview`, the command first passes the reverse-time filter 1 / (1 - T_c s), which uses future values of the
    command: the robot leans before a step begins. The filter cancels the plant's zero at 1 / T_c, which would move the
    robot in the wrong direction first. With the pole at 1 / T_c the response is the third-order lag 1 / (1 + T_c s)^3.
    The momentum that the other motions will need is looked ahead for, too, and does not disturb the command.

    Attributes:
        preview: Whether future values of the command and of the other motions are used.
    """

    preview: bool = True

    def _momentum_rate(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState, pole: Any) -> Any:
        desired, momentum, gains = self._commanded(t), MomentumReference(), BalanceGains.of(pole, state.Y1, state.Y2)
        if self.preview and callable(self.command):
            desired = previewed(self.command, t, state.time_constant)
        if self.preview and self.others:
            momentum = self._momentum_of(t, 0.0)
        return momentum.tracked(state, gains) + gains.k_q * (desired - state.q2)


@checked
@dataclass(frozen=True, eq=False)
class AngularMomentumControl(MomentumController):
    """A controller that tracks the angular momentum of the commanded motion, after Azad and Featherstone 2016.

    The plant without other motions, u' = Y1 L + Y2 L'', has one bounded solution, which depends on past and future:

        L_r = u' / (Y1 (1 - T_c^2 s^2)) = (u_ahead - u_behind) / (2 T_c Y1)

    with u_ahead = u / (1 - T_c s) and u_behind = u / (1 + T_c s). The law feeds the errors of four quantities back:

        L''' = L_r''' + k_dd (L_r'' - L'') + k_d (L_r' - L') + k_L (L_r - L) + k_q (u - q2)

    so a command with a continuous second derivative is followed without lag. For steps, pass `SmoothCommand`: with its
    time constant T_c the response is that of the preview controller. The paper's own law is not in its abstract; this
    one has the abilities that the abstract states.

    Raises:
        ArgumentError: For a `StepCommand`, which has no second derivative.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.command, StepCommand):
            raise ArgumentError("the momentum of a step is not continuous; pass SmoothCommand(steps, time_constant)")

    def momentum(self, t: Number) -> MomentumReference:
        """Return the momentum of the commanded motion and of the other motions.

        Args:
            t: Time, [s].
        """
        return self._momentum_of(t, self.command)

    def _momentum_rate(self, t: Any, q: Array, at: ReducedEquations, state: PlanarState, pole: Any) -> Any:
        gains = BalanceGains.of(pole, state.Y1, state.Y2)
        return self._momentum_of(t, self.command).tracked(state, gains) + gains.k_q * (self._commanded(t) - state.q2)
