"""Coordinates of one joint, or of a floating base, in two conventions: ours and that of another program.

A chart converts between them. All arrays may have leading axes. Velocities are related by v' = T(q) v, accelerations
(rates of the components of v) by vdot' = T vdot + Tdot v, and forces, which have equal power, by tau = T^T tau'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from legged.files.mjcf.roots import RootChain
from legged.robot.base import EulerBase
from legged.rotations import euler_angles, euler_matrix, euler_rate_matrix, quaternion_matrix, quaternion_of
from legged.spatial import Array


class Chart:
    """Identity: q' = q, v' = v. Subclasses override the configuration maps, the matrix T and the bias Tdot v.

    Attributes:
        own_unit, other_unit: Entries of q and q' that form a unit quaternion, or a cosine and a sine; None if there are
            none.
    """

    own_unit: slice | None = None
    other_unit: slice | None = None

    def to_configuration(self, q: Array) -> Array:
        """Return q', (..., nq'); q: our configuration, (..., nq)."""
        return q

    def from_configuration(self, q: Array) -> Array:
        """Return our configuration, (..., nq); q: of the other program, (..., m)."""
        return q

    def matrix(self, q: Array) -> Array | None:
        """Return T, (..., n, n), None for the identity; q: our configuration, (..., nq)."""
        return None

    def bias(self, q: Array, v: Array) -> Array | float:
        """Return Tdot v, (..., n); q: our configuration, (..., nq); v: our velocity, (..., n)."""
        return 0.0

    def to_velocity(self, q: Array, v: Array) -> Array:
        """Return v', (..., n); q: our configuration, (..., nq); v: our velocity, (..., n)."""
        return _times(self.matrix(q), v)

    def from_velocity(self, q: Array, v: Array) -> Array:
        """Return our velocity, (..., n); q: our configuration, (..., nq); v: v', (..., n)."""
        return _solve(self.matrix(q), v)

    def to_acceleration(self, q: Array, v: Array, vdot: Array) -> Array:
        """Return vdot', (..., n); q: ours, (..., nq); v: ours, (..., n); vdot: ours, (..., n)."""
        return _times(self.matrix(q), vdot) + self.bias(q, v)

    def from_acceleration(self, q: Array, v: Array, vdot: Array) -> Array:
        """Return our acceleration, (..., n); q: ours, (..., nq); v: ours, (..., n); vdot: vdot', (..., n)."""
        return _solve(self.matrix(q), vdot - self.bias(q, v))

    def to_force(self, q: Array, tau: Array) -> Array:
        """Return tau', (..., n); q: our configuration, (..., nq); tau: our forces, (..., n)."""
        return _solve(_transposed(self.matrix(q)), tau)

    def from_force(self, q: Array, tau: Array) -> Array:
        """Return our forces, (..., n); q: our configuration, (..., nq); tau: tau', (..., n)."""
        return _times(_transposed(self.matrix(q)), tau)


def _times(T: Array | None, v: Array) -> Array:
    return v if T is None else (T @ v[..., None])[..., 0]


def _solve(T: Array | None, v: Array) -> Array:
    return v if T is None else np.linalg.solve(T, v[..., None])[..., 0]


def _transposed(T: Array | None) -> Array | None:
    return None if T is None else np.swapaxes(T, -1, -2)


class BallChart(Chart):
    """A ball joint: unit quaternion with w first in q and last in q'; both angular velocities in child axes."""

    own_unit = other_unit = slice(0, 4)

    def to_configuration(self, q: Array) -> Array:
        return np.roll(q, -1, axis=-1)

    def from_configuration(self, q: Array) -> Array:
        return np.roll(q, 1, axis=-1)


class CircleChart(Chart):
    """A revolute joint: angle in q, its cosine and sine in q'; full revolutions are not represented in q'."""

    other_unit = slice(0, 2)

    def to_configuration(self, q: Array) -> Array:
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def from_configuration(self, q: Array) -> Array:
        return np.arctan2(q[..., 1:], q[..., :1])


class PlanarChart(Chart):
    """A planar joint: two displacements and an angle in q, cosine and sine in q'; linear velocity v' in child axes."""

    other_unit = slice(2, 4)

    def to_configuration(self, q: Array) -> Array:
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    def from_configuration(self, q: Array) -> Array:
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    def matrix(self, q: Array) -> Array:
        c, s, o, e = np.cos(q[..., 2]), np.sin(q[..., 2]), np.zeros(q.shape[:-1]), np.ones(q.shape[:-1])
        return np.stack([np.stack(row, axis=-1) for row in ((c, s, o), (-s, c, o), (o, o, e))], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        x, y, _ = np.moveaxis(self.to_velocity(q, v), -1, 0)
        return v[..., 2:] * np.stack([y, -x, np.zeros_like(x)], axis=-1)


@dataclass(frozen=True)
class FreeJointLayout:
    """Layout of a free joint in a program: order of the entries and axes of the velocity.

    Attributes:
        position_first: Whether q is [position; quaternion].
        w_first: Whether the real part of the quaternion comes first.
        linear_first: Whether v is [linear; angular].
        linear_in_parent, angular_in_parent: Whether these velocities are in parent axes (world axes for a base) instead
            of body axes.
    """

    position_first: bool
    w_first: bool
    linear_first: bool
    linear_in_parent: bool
    angular_in_parent: bool


OUR_BASE = FreeJointLayout(False, True, False, False, False)
OUR_JOINT = FreeJointLayout(True, True, True, True, False)
PINOCCHIO = FreeJointLayout(True, False, True, False, False)
MUJOCO = FreeJointLayout(True, True, True, True, False)
DRAKE = FreeJointLayout(False, True, False, True, True)
ROS = FreeJointLayout(True, False, True, False, False)


@dataclass(frozen=True)
class FreeChart(Chart):
    """A free joint in two layouts.

    Attributes:
        own, other: Ours and that of the other program.
        turn: Rotation matrix, (3, 3), from axes of the link that the free joint of the other program moves to those of
            the link that ours moves; both links are fixed to each other.
    """

    own: FreeJointLayout
    other: FreeJointLayout
    turn: Array = field(default_factory=lambda: np.eye(3))

    def __post_init__(self) -> None:
        object.__setattr__(self, "own_unit", _quaternion(self.own))
        object.__setattr__(self, "other_unit", _quaternion(self.other))

    def to_configuration(self, q: Array) -> Array:
        return _reorder(self._turned(q, 1.0), self.own, self.other)

    def from_configuration(self, q: Array) -> Array:
        return self._turned(_reorder(q, self.other, self.own), -1.0)

    def matrix(self, q: Array) -> Array:
        R = self._rotation(q)
        linear = _relative_rotation(R, self.turn, self.own.linear_in_parent, self.other.linear_in_parent)
        angular = _relative_rotation(R, self.turn, self.own.angular_in_parent, self.other.angular_in_parent)
        T = np.zeros((*q.shape[:-1], 6, 6))
        T[..., _linear(self.other), _linear(self.own)] = linear
        T[..., _angular(self.other), _angular(self.own)] = angular
        return T

    def bias(self, q: Array, v: Array) -> Array:
        """Return Tdot v, (..., 6): with Rdot = R omega~, the rate of R v contains R (omega x v), that of R^T v
        contains -omega x (R^T v). q (..., 7), v (..., 6)."""
        R = self._rotation(q)
        omega, linear = v[..., _angular(self.own)], v[..., _linear(self.own)]
        if self.own.angular_in_parent:
            omega = _times(_transposed(R), omega)
        bias = np.zeros_like(v)
        if self.other.linear_in_parent and not self.own.linear_in_parent:
            bias[..., _linear(self.other)] = _times(R, np.cross(omega, linear))
        elif self.own.linear_in_parent and not self.other.linear_in_parent:
            bias[..., _linear(self.other)] = -np.cross(omega, _times(_transposed(R), linear)) @ self.turn
        return bias

    def _turned(self, q: Array, sign: float) -> Array:
        """Return our q, (..., 7), rotated by `turn` (sign 1) or by its inverse (sign -1)."""
        if (self.turn == np.eye(3)).all():
            return q
        w, x, y, z = quaternion_of(self.turn) * np.array([1.0, sign, sign, sign])
        product = np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])  # with it on the right
        parts = _reorder(q, self.own, OUR_BASE)
        turned = np.concatenate([parts[..., :4] @ product.T, parts[..., 4:]], axis=-1)
        return _reorder(turned, OUR_BASE, self.own)

    def _rotation(self, q: Array) -> Array:
        quaternion = _reorder(q, self.own, OUR_BASE)[..., :4]
        return np.moveaxis(quaternion_matrix(np.moveaxis(quaternion, -1, 0)), (0, 1), (-2, -1))


def _relative_rotation(R: Array, turn: Array, own_in_parent: bool, other_in_parent: bool) -> Array:
    """Return the rotation from our axes to those of the other program, (..., 3, 3).

    Args:
        R: Our body axes to parent axes, (..., 3, 3). turn: As in `FreeChart`.
        own_in_parent, other_in_parent: As in `FreeJointLayout`.
    """
    if other_in_parent:
        return np.broadcast_to(np.eye(3), R.shape) if own_in_parent else R
    return np.swapaxes(R @ turn, -1, -2) if own_in_parent else np.broadcast_to(turn.T, R.shape)


def _linear(order: FreeJointLayout) -> slice:
    return slice(0, 3) if order.linear_first else slice(3, 6)


def _angular(order: FreeJointLayout) -> slice:
    return slice(3, 6) if order.linear_first else slice(0, 3)


def _quaternion(order: FreeJointLayout) -> slice:
    return slice(3, 7) if order.position_first else slice(0, 4)


def _reorder(q: Array, own: FreeJointLayout, other: FreeJointLayout) -> Array:
    position, quaternion = (q[..., :3], q[..., 3:]) if own.position_first else (q[..., 4:], q[..., :4])
    quaternion = np.roll(quaternion, other.w_first - own.w_first, axis=-1)
    parts = [position, quaternion] if other.position_first else [quaternion, position]
    return np.concatenate(parts, axis=-1)


@dataclass(frozen=True)
class PlanarChainChart(Chart):
    """A planar base: q = [phi, x, z]; in the other program two slides and a hinge about y, q' affine in q."""

    chain: RootChain

    def to_configuration(self, q: Array) -> Array:
        chain = self.chain
        path = (q[..., 1:] - chain.place.position[[0, 2]]) @ np.linalg.inv(chain.slides).T
        return np.concatenate([path, chain.signs * (q[..., :1] - self._angle)], axis=-1) + chain.references

    def from_configuration(self, q: Array) -> Array:
        moved = q - self.chain.references
        position = self.chain.place.position[[0, 2]] + moved[..., :2] @ self.chain.slides.T
        return np.concatenate([self._angle + self.chain.signs * moved[..., 2:], position], axis=-1)

    def matrix(self, q: Array) -> Array:
        T = np.zeros((3, 3))
        T[:2, 1:], T[2, 0] = np.linalg.inv(self.chain.slides), self.chain.signs[0]
        return np.broadcast_to(T, (*q.shape[:-1], 3, 3))

    @property
    def _angle(self) -> float:
        """Angle of the body about the world's y axis with its hinge at rest, [rad]."""
        R = self.chain.place.rotation
        return float(np.arctan2(R[0, 2], R[0, 0]))


@dataclass(frozen=True)
class FloatingChainChart(Chart):
    """A floating base: q = [quaternion; position]; in the other program three slides, and a ball or three hinges."""

    chain: RootChain

    def __post_init__(self) -> None:
        object.__setattr__(self, "own_unit", slice(0, 4))
        object.__setattr__(self, "other_unit", None if self.chain.sequence else slice(3, 7))

    def to_configuration(self, q: Array) -> Array:
        return _each((6 if self.chain.sequence else 7,), self._to_one, q)

    def from_configuration(self, q: Array) -> Array:
        return _each((7,), self._from_one, q)

    def matrix(self, q: Array) -> Array:
        return _each((6, 6), self._matrix_of_one, q)

    def bias(self, q: Array, v: Array) -> Array:
        return _each((6,), self._bias_of_one, q, v)

    def _to_one(self, q: Array) -> Array:
        chain = self.chain
        path = np.linalg.solve(chain.slides, q[4:7] - chain.place.position) + chain.references[:3]
        turn = chain.place.rotation.T @ quaternion_matrix(q[:4])
        if not chain.sequence:
            return np.concatenate([path, quaternion_of(turn)])
        return np.concatenate([path, chain.signs * euler_angles(chain.sequence, turn) + chain.references[3:]])

    def _from_one(self, q: Array) -> Array:
        chain = self.chain
        position = chain.place.position + chain.slides @ (q[:3] - chain.references[:3])
        if chain.sequence:
            turn = euler_matrix(chain.sequence, chain.signs * (q[3:] - chain.references[3:]))
        else:
            turn = quaternion_matrix(q[3:])
        return np.concatenate([quaternion_of(chain.place.rotation @ turn), position])

    def _angles(self, q: Array) -> Array:
        return euler_angles(self.chain.sequence, self.chain.place.rotation.T @ quaternion_matrix(q[:4]))

    def _matrix_of_one(self, q: Array) -> Array:
        T = np.zeros((6, 6))
        T[:3, 3:], T[3:, :3] = np.linalg.solve(self.chain.slides, quaternion_matrix(q[:4])), np.eye(3)
        if self.chain.sequence:
            L = euler_rate_matrix(self.chain.sequence, self._angles(q))
            T[3:, :3] = self.chain.signs[:, None] * np.linalg.inv(L)
        return T

    def _bias_of_one(self, q: Array, v: Array) -> Array:
        linear = np.linalg.solve(self.chain.slides, quaternion_matrix(q[:4]) @ np.cross(v[:3], v[3:]))
        if not self.chain.sequence:
            return np.concatenate([linear, np.zeros(3)])
        angles = self._angles(q)
        L = euler_rate_matrix(self.chain.sequence, angles)
        base, rates = EulerBase(self.chain.sequence), np.linalg.solve(L, v[:3])
        bias = base.motion_bias(np.concatenate([angles, np.zeros(3)]), np.concatenate([rates, np.zeros(3)]))[:3]
        return np.concatenate([linear, -self.chain.signs * np.linalg.solve(L, bias)])


def chart_of(chain: RootChain) -> Chart:
    """Return the chart of a base that a chain of joints moves.

    Args:
        chain: The joints.
    """
    return PlanarChainChart(chain) if chain.kind == "planar" else FloatingChainChart(chain)


def _each(shape: tuple[int, ...], function: Callable[..., Array], *arrays: Array) -> Array:
    """Return a function of the vectors of one state, with results of a shape, for each state of a batch."""
    rows = zip(*(array.reshape(-1, array.shape[-1]) for array in arrays), strict=True)
    return np.array([function(*row) for row in rows]).reshape(*arrays[0].shape[:-1], *shape)
