"""The controller of bending and swivelling: the law of planar balance in each direction of a spatial robot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from controllers.balance.planar.commands import previewed
from controllers.balance.planar.control import BalanceGains, MomentumReference
from controllers.balance.planar.model import PlanarState
from controllers.balance.spatial.model import BendSwivelBalance, BendSwivelState, SpatialEquations, inverse
from legged import arguments
from legged.checked import checked
from legged.spatial import Array, cross, factor_symmetric, solve_factored


@checked
@dataclass(frozen=True, eq=False)
class BendSwivelControl:
    """Balance by bending and swivelling, each by the four-term law of planar balance in its own horizontal direction.

        L_n''' = -k_dd L_n'' - k_d L_n' - k_L (L_n - L_0) - k_q (theta - theta_u)
        L_s''' = -k_dd L_s'' - k_d L_s' - k_L (L_s - L_0) - k_q e
        e = 2 sin(theta_u / 2) (phi - phi_u)

    with gains from the plant of each direction, see `controllers.PlanarBalanceControl`, and L_0 = -Y3 / Y1, at which
    the motion rests: zero without angular momentum about the vertical, which a push may leave. A robot that
    straightens, theta_u = 0, has no direction to swivel to: e is then the bend out of the commanded plane. The torques
    produce L''' exactly in any posture whose velocity gains are not zero, symmetric or not.

    Attributes:
        model: The robot's balance model.
        bend: theta_u as a function of time, not negative: a number, a function that can be traced, or `StepCommand`,
            [rad].
        swivel: phi_u in the same forms, [rad]. It leads phi by up to a quarter turn; from further away the robot
            straightens and bends to the other side.
        pole: p, the poles of the closed loop are at -p, [1/s]; 1 / T_c of each direction for None.
        preview: Whether future values of the commands are used, by the reverse-time filter 1 / (1 - T_c s).
        limit: Largest generalized force of each coordinate of the joint, [N m]; infinite for none.
    """

    model: BendSwivelBalance
    bend: Any = 0.0
    swivel: Any = 0.0
    pole: float | None = None
    preview: bool = True
    limit: float = np.inf

    def __post_init__(self) -> None:
        for name in ("bend", "swivel"):
            if not callable(getattr(self, name)):
                arguments.number(name, getattr(self, name), "rad")
        if self.pole is not None:
            arguments.number("pole", self.pole, "1/s", above=0.0)
        if self.limit != np.inf:
            arguments.number("limit", self.limit, "N m", above=0.0)

    def __call__(self, t: Any, q: Array, v: Array, wrenches: Array | None = None) -> Array:
        """Return the generalized forces, (5,), [N m]; zero at the support.

        Args:
            t: Time, [s]. q: Configuration, (6,). v: Velocity, (5,). wrenches: Not used.
        """
        at = self.model.equations(q, v)
        state = self.model.state_of(q, at, _value(self.swivel, t))
        bend = self._desired(self.bend, t, state.bend)
        swivel = self._desired(self.swivel, t, state.swivel)
        lag = state.swivel.q2 - swivel
        error = 2.0 * np.sin(bend / 2.0) * np.arctan2(np.sin(lag), np.cos(lag)) + state.across
        L3 = self._momentum_rate(state.bend, state.bend.q2 - bend), self._momentum_rate(state.swivel, error)
        torques = self._torques(at, state, np.stack(L3))
        if self.limit != np.inf:
            torques = np.minimum(np.maximum(torques, -self.limit), self.limit)
        return np.concatenate([np.zeros(3), torques])

    def _desired(self, command: Any, t: Any, state: PlanarState) -> Any:
        """Return the command, through the filter if it is previewed, [rad]."""
        if self.preview and callable(command):
            return previewed(command, t, state.time_constant)
        return _value(command, t)

    def _momentum_rate(self, state: PlanarState, error: Any) -> Any:
        """Return L''' about one axis, [N m/s^2]."""
        pole = 1.0 / state.time_constant if self.pole is None else self.pole
        gains = BalanceGains.of(pole, state.Y1, state.Y2)
        resting = -state.Y3 / state.Y1  # the momentum at which the motion rests
        return MomentumReference(resting).tracked(state, gains) - gains.k_q * error

    def _torques(self, at: SpatialEquations, state: BendSwivelState, L3: Array) -> Array:
        """Return the joint's torques, (2,), that produce L''' about both axes, (2,), [N m/s^2]."""
        ahead = np.stack([cross(axis, self.model.up) for axis in state.axes])
        H11 = factor_symmetric(at.H[:3, :3])
        # c'' = X v' + X_rate with the support's accelerations from its equations, which have no torque.
        falling = solve_factored(H11, -at.h[:3])
        wanted = L3 / self.model.weight - ahead @ (at.X[:, :3] @ falling + at.X_rate)
        joint = inverse(ahead @ at.G) @ wanted
        support = falling - np.stack([solve_factored(H11, column) for column in at.H[:3, 3:].T], axis=1) @ joint
        return at.H[3:, :3] @ support + at.H[3:, 3:] @ joint + at.h[3:]


def _value(command: Any, t: Any) -> Any:
    return command(t) if callable(command) else command
