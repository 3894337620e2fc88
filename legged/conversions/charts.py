"""Coordinates of one joint, or of a free base, in two programs at once: ours and theirs.

All arrays have leading axes. Velocities are related by v' = T(q) v, so that accelerations, which are rates of the
components of v, are related by vdot' = T vdot + Tdot v, and forces, which have the same power, by tau = T^T tau'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from legged.rotations import quaternion_matrix
from legged.spatial import Array


class Chart:
    """Common part: q' = q, v' = v.

    Attributes:
        our_unit, their_unit: Which coordinates here and there are those of a quaternion, or a cosine and a sine.
    """

    our_unit: slice | None = None
    their_unit: slice | None = None

    def theirs(self, q: Array) -> Array:
        """Return their coordinates."""
        return q

    def ours(self, q: Array) -> Array:
        """Return our coordinates from theirs."""
        return q

    def matrix(self, q: Array) -> Array | None:
        """Return T at our q, (..., n, n); None for the identity."""
        return None

    def bias(self, q: Array, v: Array) -> Array | float:
        """Return Tdot v at our q and v, (..., n)."""
        return 0.0

    def their_velocity(self, q: Array, v: Array) -> Array:
        return _times(self.matrix(q), v)

    def our_velocity(self, q: Array, v: Array) -> Array:
        return _solve(self.matrix(q), v)

    def their_acceleration(self, q: Array, v: Array, vdot: Array) -> Array:
        return _times(self.matrix(q), vdot) + self.bias(q, v)

    def our_acceleration(self, q: Array, v: Array, vdot: Array) -> Array:
        """Return ours from theirs; q and v are ours."""
        return _solve(self.matrix(q), vdot - self.bias(q, v))

    def their_force(self, q: Array, tau: Array) -> Array:
        return _solve(_transposed(self.matrix(q)), tau)

    def our_force(self, q: Array, tau: Array) -> Array:
        return _times(_transposed(self.matrix(q)), tau)


def _times(T: Array | None, v: Array) -> Array:
    return v if T is None else (T @ v[..., None])[..., 0]


def _solve(T: Array | None, v: Array) -> Array:
    return v if T is None else np.linalg.solve(T, v[..., None])[..., 0]


def _transposed(T: Array | None) -> Array | None:
    return None if T is None else np.swapaxes(T, -1, -2)


class Ball(Chart):
    """A unit quaternion, w first here and last there; angular velocities are in the child's axes in both."""

    our_unit = their_unit = slice(0, 4)

    def theirs(self, q: Array) -> Array:
        return np.roll(q, -1, axis=-1)

    def ours(self, q: Array) -> Array:
        return np.roll(q, 1, axis=-1)


class Circle(Chart):
    """An angle here, its cosine and sine there; full turns are lost."""

    their_unit = slice(0, 2)

    def theirs(self, q: Array) -> Array:
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1)

    def ours(self, q: Array) -> Array:
        return np.arctan2(q[..., 1:], q[..., :1])


class TurningPlane(Chart):
    """Two slides and an angle here; there its cosine and sine, and the velocity in axes that turn with it."""

    their_unit = slice(2, 4)

    def theirs(self, q: Array) -> Array:
        return np.concatenate([q[..., :2], np.cos(q[..., 2:]), np.sin(q[..., 2:])], axis=-1)

    def ours(self, q: Array) -> Array:
        return np.concatenate([q[..., :2], np.arctan2(q[..., 3:], q[..., 2:3])], axis=-1)

    def matrix(self, q: Array) -> Array:
        c, s, o, e = np.cos(q[..., 2]), np.sin(q[..., 2]), np.zeros(q.shape[:-1]), np.ones(q.shape[:-1])
        return np.stack([np.stack(row, axis=-1) for row in ((c, s, o), (-s, c, o), (o, o, e))], axis=-2)

    def bias(self, q: Array, v: Array) -> Array:
        x, y, _ = np.moveaxis(self.their_velocity(q, v), -1, 0)
        return v[..., 2:] * np.stack([y, -x, np.zeros_like(x)], axis=-1)


@dataclass(frozen=True)
class FreeOrder:
    """How a program writes a free body: orders, and the axes of its velocity.

    Attributes:
        position_first: Whether q is [position; quaternion].
        w_first: Whether the quaternion's real part comes first.
        linear_first: Whether v is [linear; angular].
        linear_in_parent, angular_in_parent: Whether these are written in the parent's axes (the world's, for a base),
            and not in the body's.
    """

    position_first: bool
    w_first: bool
    linear_first: bool
    linear_in_parent: bool
    angular_in_parent: bool


OUR_BASE = FreeOrder(False, True, False, False, False)
OUR_JOINT = FreeOrder(True, True, True, True, False)
PINOCCHIO = FreeOrder(True, False, True, False, False)
MUJOCO = FreeOrder(True, True, True, True, False)
DRAKE = FreeOrder(False, True, False, True, True)
ROS = FreeOrder(True, False, True, False, False)


@dataclass(frozen=True)
class Free(Chart):
    """A body free in space, written in two ways."""

    here: FreeOrder
    there: FreeOrder

    def __post_init__(self) -> None:
        object.__setattr__(self, "our_unit", _quaternion(self.here))
        object.__setattr__(self, "their_unit", _quaternion(self.there))

    def theirs(self, q: Array) -> Array:
        return _reorder(q, self.here, self.there)

    def ours(self, q: Array) -> Array:
        return _reorder(q, self.there, self.here)

    def matrix(self, q: Array) -> Array:
        R = self._rotation(q)
        linear = _turn(R, self.here.linear_in_parent, self.there.linear_in_parent)
        angular = _turn(R, self.here.angular_in_parent, self.there.angular_in_parent)
        T = np.zeros((*q.shape[:-1], 6, 6))
        T[..., _linear(self.there), _linear(self.here)] = linear
        T[..., _angular(self.there), _angular(self.here)] = angular
        return T

    def bias(self, q: Array, v: Array) -> Array:
        """Return Tdot v: with R' = R omega~, (R v)' has R (omega x v), and (R^T v)' has -omega x (R^T v)."""
        R = self._rotation(q)
        omega, linear = v[..., _angular(self.here)], v[..., _linear(self.here)]
        if self.here.angular_in_parent:
            omega = _times(_transposed(R), omega)
        bias = np.zeros_like(v)
        if self.there.linear_in_parent and not self.here.linear_in_parent:
            bias[..., _linear(self.there)] = _times(R, np.cross(omega, linear))
        elif self.here.linear_in_parent and not self.there.linear_in_parent:
            bias[..., _linear(self.there)] = -np.cross(omega, _times(_transposed(R), linear))
        return bias

    def _rotation(self, q: Array) -> Array:
        quaternion = _reorder(q, self.here, OUR_BASE)[..., :4]
        return np.moveaxis(quaternion_matrix(np.moveaxis(quaternion, -1, 0)), (0, 1), (-2, -1))


def _turn(R: Array, here_in_parent: bool, there_in_parent: bool) -> Array:
    if here_in_parent == there_in_parent:
        return np.broadcast_to(np.eye(3), R.shape)
    return np.swapaxes(R, -1, -2) if here_in_parent else R


def _linear(order: FreeOrder) -> slice:
    return slice(0, 3) if order.linear_first else slice(3, 6)


def _angular(order: FreeOrder) -> slice:
    return slice(3, 6) if order.linear_first else slice(0, 3)


def _quaternion(order: FreeOrder) -> slice:
    return slice(3, 7) if order.position_first else slice(0, 4)


def _reorder(q: Array, here: FreeOrder, there: FreeOrder) -> Array:
    position, quaternion = (q[..., :3], q[..., 3:]) if here.position_first else (q[..., 4:], q[..., :4])
    quaternion = np.roll(quaternion, there.w_first - here.w_first, axis=-1)
    parts = [position, quaternion] if there.position_first else [quaternion, position]
    return np.concatenate(parts, axis=-1)
