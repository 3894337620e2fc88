"""Balance of a spatial robot on a point whose only motors bend a constant-velocity joint: model and controller.

The joint is bent by theta; the bending plane contains both shafts, and its direction in the leg is phi. At each instant
the motion of the joint is the sum of bending in this plane and of swiveling out of it, with the angular velocities

    theta'  about n, the normal of the bending plane,       omega_s = 2 sin(theta / 2) phi'  about s, in it,

both in the plane that bisects the shafts. With the angular momentum L about the support and the center of mass c from
it,

    L' = m c x g,       c' = C L + G [theta'; omega_s],       C = X1 H11^-1,  G = (X2 - X1 H11^-1 H12) T

where H and X are the blocks of the inertia matrix and of the Jacobian of c for the three rotations about the support
and the joint's rates, and T gives these rates from [theta'; omega_s]. If the links are symmetric about their shafts,
the posture is its own mirror image in the bending plane. The horizontal components along n and s then separate:
bending is the planar balance of Featherstone, and swiveling has a plant of the same form,

    theta' = Y1 L_n + Y2 L_n'',      omega_s = Y1 L_s + Y2 L_s'' + Y3,

with Y3 from the angular momentum about the vertical alone, which no torque about the support changes.

Source: Azad and Featherstone 2014, IROS, "Balancing control algorithm for a 3D under-actuated robot", whose abstract
states the decoupling by a constant-velocity joint and the three motions. The equations are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from controllers.balance.planar.commands import previewed
from controllers.balance.planar.control import BalanceGains, MomentumReference
from controllers.balance.planar.model import BalancePlant, PlanarState
from legged import arguments
from legged.algorithms.inverse_kinematics import center_of_mass_jacobian
from legged.checked import checked
from legged.compiler import where
from legged.dynamics.frames import frame_pose
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.inverse import bias_forces
from legged.dynamics.kinematics import center_of_mass, momentum_rate
from legged.errors import DefinitionError
from legged.robot.base import FixedBase
from legged.robot.configuration import read
from legged.robot.joint import ConstantVelocity, Spherical
from legged.robot.robot import Robot
from legged.rotations import euler_matrix
from legged.spatial import Array, cross, factor_symmetric, solve_factored

_STRAIGHT = 0.02
"""Sine of half the bend below which the direction of bending gives way to that of the command."""


class BendSwivelState(NamedTuple):
    """The state of balance of a bending robot on its support point.

    Attributes:
        bend: State of the bending motion: q2 is theta, [rad], positive in the direction `axes[0]`.
        swivel: State of the swiveling motion: q2 is phi, [rad], and q2_rate is 2 sin(theta / 2) phi', [rad/s].
        momentum: Angular momentum about the support, (3,), [kg m^2/s], world axes.
        axes: Horizontal unit vectors along n and s, about which bend and swivel balance, (2, 3), world axes.
        coupling: Velocity gains of bending on the balance of swiveling and vice versa, (2,), [m]; zero if the posture
            is symmetric about the bending plane.
        across: Twice the sine of half the bend out of the direction phi; zero unless the joint is nearly straight,
            where phi is the direction of the command.
    """

    bend: PlanarState
    swivel: PlanarState
    momentum: Array
    axes: Array
    coupling: Array
    across: Any


class SpatialEquations(NamedTuple):
    """Equations in the coordinates [rotation about the support, leg axes; joint]: H v' + h = [0; torques].

    Attributes:
        v: Velocity, (5,). H: Inertia matrix, (5, 5). h: Bias forces, (5,).
        X: c' = X v, (3, 5), [m], world axes. X_rate: c'' at v' = 0, (3,), [m/s^2]. c: Center of mass, (3,), [m].
        C: Change of c' per angular momentum, (3, 3), [1/(kg m)], world axes. G: Velocity gains of the joint's rates,
            (3, 2), [m], world axes.
        R: Leg axes to world axes, (3, 3).
    """

    v: Array
    H: Array
    h: Array
    X: Array
    X_rate: Array
    c: Array
    C: Array
    G: Array
    R: Array


class Bending(NamedTuple):
    """How the joint is bent.

    Attributes:
        angle: theta, [rad]. direction: phi, [rad]. across: As in `BendSwivelState`.
        normals: n and s, (2, 3), world axes. rates: [theta'; omega_s] per rate of the joint, (2, 2).
    """

    angle: Any
    direction: Any
    across: Any
    normals: Array
    rates: Array


@checked
@dataclass(frozen=True, eq=False)
class BendSwivelBalance:
    """The balance model of a robot on a point, with a constant-velocity joint.

    The robot has a fixed base, a quaternion ball joint and a constant-velocity joint outward of it. The ball joint is
    the support, a point without friction: it has no motor and transmits no moment, also about the vertical. The links
    may have any mass and shape; if each is symmetric about its shaft, bending and swiveling decouple.

    Attributes:
        robot: The robot.
    """

    robot: Robot

    def __post_init__(self) -> None:
        joints = [joint.definition for joint in self.robot.joints]
        ball = len(joints) == 2 and isinstance(joints[0], Spherical) and joints[0].sequence is None
        if not isinstance(self.robot.base, FixedBase) or not ball or not isinstance(joints[1], ConstantVelocity):
            raise DefinitionError(
                f"robot {self.robot.name!r} must have a fixed base and two joints, a quaternion ball joint as support "
                f"and a constant-velocity joint outward of it"
            )
        if not self.robot.gravity.any():
            raise DefinitionError(
                f"robot {self.robot.name!r} has no gravity; give it gravity, against which it can balance"
            )

    @property
    def weight(self) -> float:
        """m g, [N], without the mass of the fixed base."""
        return self.mass * float(np.linalg.norm(self.robot.gravity))

    @property
    def mass(self) -> float:
        """The moving mass, [kg], without that of the fixed base."""
        return self.robot.mass - self.robot.bodies[0].moments.mass

    @property
    def up(self) -> Array:
        """The vertical, a unit vector, (3,), world axes."""
        return -self.robot.gravity / float(np.linalg.norm(self.robot.gravity))

    def angles(self, bend: float, direction: float) -> Array:
        """Return the coordinates (a, b) of the joint, (2,), [rad].

        Args:
            bend: theta, [rad]. direction: phi, [rad], from the joint's first axis to its second.
        """
        x, y = np.sin(bend / 2.0) * np.cos(direction), np.sin(bend / 2.0) * np.sin(direction)
        b = np.arcsin(y)
        return np.array([np.arcsin(x / np.cos(b)), b])

    def balanced(self, bend: float, direction: float = 0.0) -> Array:
        """Return the configuration, (6,), with the center of mass above the support.

        Args:
            bend: theta, [rad]. direction: phi, [rad].
        """
        bend, direction = arguments.number("bend", bend), arguments.number("direction", direction)
        q = np.concatenate([[1.0, 0.0, 0.0, 0.0], self.angles(bend, direction)])
        c, up = self.center(q), self.up
        lean = cross(c, up)
        size = float(np.linalg.norm(lean))
        if size > 0.0:
            half = 0.5 * np.arctan2(size, c @ up)
            q[:4] = np.concatenate([[np.cos(half)], np.sin(half) * lean / size])
        return q

    def center(self, q: Array) -> Array:
        """Return the center of the moving mass from the support, (3,), [m], world axes.

        Args:
            q: Configuration, (6,).
        """
        robot, ground = self.robot, self.robot.bodies[0].moments
        support = frame_pose(robot, q, robot.joints[0].child).position
        return (robot.mass * center_of_mass(robot, q) - ground.h) / self.mass - support

    def equations(self, q: Array, v: Array) -> SpatialEquations:
        """Return the equations of motion about the support; the function can be traced.

        Args:
            q: Configuration, (6,). v: Velocity, (5,).
        """
        robot = self.robot
        q, v = read(robot, q=q, v=v)
        H, h = inertia_matrix(robot, q), bias_forces(robot, q, v)
        X = center_of_mass_jacobian(robot, q) * (robot.mass / self.mass)
        X_rate = momentum_rate(robot, q, v, 0.0 * v)[3:] / self.mass
        R = frame_pose(robot, q, robot.joints[0].child).rotation
        factors = factor_symmetric(H[:3, :3])
        by_momentum = np.stack([solve_factored(factors, row) for row in X[:, :3]])  # X1 H11^-1, leg axes
        G = X[:, 3:] - by_momentum @ H[:3, 3:]
        return SpatialEquations(v, H, h, X, X_rate, self.center(q), by_momentum @ R.T, G, R)

    def state(self, q: Array, v: Array, direction: Any = 0.0) -> BendSwivelState:
        """Return the state of balance; the function can be traced.

        Args:
            q: Configuration, (6,). v: Velocity, (5,).
            direction: phi that the joint bends to if it is straight, [rad].
        """
        return self.state_of(q, self.equations(q, v), direction)

    def state_of(self, q: Array, at: SpatialEquations, direction: Any = 0.0) -> BendSwivelState:
        """Return the state of balance.

        Args:
            q: Configuration, (6,). at: Its equations of motion. direction: As in `state`.
        """
        bending = self.bending(q, at, direction)
        normal = bending.normals[0] - self.up * (self.up @ bending.normals[0])
        n = normal / np.sqrt(normal @ normal)
        axes = np.stack([n, cross(self.up, n)])
        ahead = np.stack([cross(axis, self.up) for axis in axes])  # a rotation about an axis moves the mass there
        C, G = ahead @ at.C, ahead @ at.G @ inverse(bending.rates)
        L, c_rate, rates = at.R @ (at.H[:3] @ at.v), at.X @ at.v, bending.rates @ at.v[3:]
        L1, L2 = self.weight * (axes @ cross(self.up, at.c)), self.weight * (axes @ cross(self.up, c_rate))
        states = []
        for i, position in enumerate((bending.angle, bending.direction)):
            plant = BalancePlant.of(self.weight, C[i] @ axes[i], G[i, i])
            other = C[i] @ (L - axes[i] * (axes[i] @ L)) + G[i, 1 - i] * rates[1 - i]
            kinetics = axes[i] @ L, L1[i], L2[i], position, rates[i]
            states.append(PlanarState(*kinetics, plant.Y1, plant.Y2, -other / plant.gain, *plant[2:]))
        return BendSwivelState(states[0], states[1], L, axes, np.stack([G[1, 0], G[0, 1]]), bending.across)

    def bending(self, q: Array, at: SpatialEquations, direction: Any) -> Bending:
        """Return the bending of the joint.

        Args:
            q: Configuration, (6,). at: Its equations of motion. direction: As in `state`.
        """
        direction = arguments.number("direction", direction, "rad")
        (q,) = read(self.robot, q=q)
        definition, (a, b) = self.robot.joints[1].definition, q[4:]
        first, second = (stage.axis for stage in definition.stages[:2])
        start = next(c.start.rotation for c in self.robot.connections if c.joint is definition)
        joint = at.R @ start @ np.stack([first, second, np.cross(first, second)], axis=1)
        ca, cb, sa, sb = np.cos(a), np.cos(b), np.sin(a), np.sin(b)
        w = np.stack([sa * cb, sb])  # along n, sin(theta / 2) long
        share = _STRAIGHT**3 / (_STRAIGHT**2 + w @ w)  # of the command, which gives n where the joint is straight
        ahead = np.stack([np.cos(direction), np.sin(direction)])
        n = where(w @ ahead < 0.0, -1.0, 1.0) * w + share * ahead
        n = n / np.sqrt(n @ n)
        middle = joint @ euler_matrix("xyx", np.stack([a, b, 0.0 * b]))  # bisecting frame, in which the rates are S v
        normal = joint[:, :2] @ n
        normals = np.stack([normal, cross(middle[:, 2], normal)])
        rates = normals @ (middle[:, :2] * np.stack([2.0 * cb, 2.0 + 0.0 * cb]))
        across = 2.0 * (w[1] * n[0] - w[0] * n[1])
        return Bending(2.0 * np.arctan2(w @ n, ca * cb), np.arctan2(n[1], n[0]), across, normals, rates)


def inverse(A: Array) -> Array:
    """Return the inverse of a matrix, (2, 2).

    Args:
        A: The matrix, (2, 2), any unit, floats or traced scalars.
    """
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    return np.stack([np.stack([A[1, 1], -A[0, 1]]), np.stack([-A[1, 0], A[0, 0]])]) / determinant


@checked
@dataclass(frozen=True, eq=False)
class BendSwivelControl:
    """Balance by bending and swiveling, each by the four-term law of planar balance in its own horizontal direction.

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
