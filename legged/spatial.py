"""Spatial (six-dimensional) vectors, matrices and coordinate transforms, angular part first, for any element type.

A twist t = [omega; v] and a wrench w = [n; f] are taken at a frame's origin and written in its axes. A `Transform`
leads from a parent frame to a child frame as a sequence of elementary steps (translations and rotations), so that

    X @ t                   carries a twist from parent to child,
    X.T @ w                 carries a wrench from child to parent,
    X.transform_inertia(M)  is X.T @ M @ X, the child's mass matrix about the parent's origin, in the parent's axes.

Each step is a sparse 6x6 matrix; applied one after the other, they keep the operation counts low.
Arrays hold floats or traced scalars (`Expression`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from legged.elements import Element, is_singular

_ROUNDING = 1e-15  # relative to a diagonal entry: a smaller pivot is zero within rounding
Array = np.ndarray
Scalar = Any  # a float or an Expression


def cross(a: Array, b: Array) -> Array:
    """Return the cross product a x b, (3,), in the product of the units of a and b.

    Args:
        a: First factor, (3,), [any unit]. b: Second factor, (3,), [any unit], in the same axes.
    """
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Array) -> Array:
    """Return the skew-symmetric matrix a~, (3, 3), with a~ @ b = a x b.

    Args:
        a: A vector, (3,), [any unit]; the matrix has its unit and its axes.
    """
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def join(top: Array, bottom: Array) -> Array:
    """Return the spatial vector [top; bottom], (6,).

    Args:
        top: Angular part, (3,), [any unit]. bottom: Linear part, (3,), [any unit], in the same axes.
    """
    return np.concatenate([top, bottom])


def zeros(shape: int | tuple[int, ...], *elements: Any) -> Array:
    """Return zeros that can take the entries of other arrays: of objects if one of these holds traced scalars.

    Args:
        shape: The shape. elements: Arrays or scalars whose entries will be added or assigned.
    """
    return np.zeros(shape, object if any(np.asarray(x).dtype == object for x in elements) else float)


def angular_acceleration_tensor(omega: Array, omegad: Array) -> Array:
    """Return Phi = omegad~ + omega~ omega~, (3, 3), [1/s^2], the angular acceleration tensor.

    A point of the body at r from the origin has the origin's acceleration plus Phi @ r.

    Args:
        omega: Angular velocity, (3,), [rad/s], in any axes. omegad: Its rate, (3,), [rad/s^2], in the same axes.
    """
    x, y, z = omega
    xd, yd, zd = omegad
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array(
        [[-(yy + zz), xy - zd, xz + yd], [xy + zd, -(xx + zz), yz - xd], [xz - yd, yz + xd, -(xx + yy)]],
    )


def mass_matrix(mass: Scalar, h: Array, inertia: Array) -> Array:
    """Return the mass matrix M of a rigid body, (6, 6), about the origin O of its frame, in its axes.

        M = [  I    h~ ]       h = m d
            [ -h~   m1 ]

    Args:
        mass: m, [kg].
        h: First moment of mass m d, d from O to the center of mass, (3,), [kg m].
        inertia: I, about O, (3, 3), [kg m^2].

    Source: Shah, Saha, Dutt 2012, eq. (19).
    """
    return np.block([[inertia, skew(h)], [-skew(h), mass * np.eye(3)]])


class ElementaryTransform:
    """Base class of the elementary transforms from a parent frame to a child frame fixed to it."""

    def twist(self, t: Array) -> Array:
        """Return the child's twist, (6,), [rad/s, m/s], child axes.

        Args:
            t: The parent's twist, (6,), [rad/s, m/s], parent axes.
        """
        raise NotImplementedError

    def twist_rate(self, t: Array, td: Array) -> Array:
        """Return the child's [omega dot; acceleration of the origin], (6,), [rad/s^2, m/s^2], child axes.

        Args:
            t: The parent's twist, (6,), [rad/s, m/s], parent axes.
            td: The parent's [omega dot; acceleration of the origin], (6,), [rad/s^2, m/s^2], parent axes.
        """
        return self.twist(td)  # if child and parent have the same origin

    def wrench(self, w: Array) -> Array:
        """Return a child's wrench about the parent's origin, (6,), [N m, N], parent axes.

        Args:
            w: The wrench about the child's origin, (6,), [N m, N], child axes.
        """
        raise NotImplementedError

    def transform_inertia(self, M: Array) -> Array:
        """Return X.T @ M @ X, (6, 6), [kg m^2, kg m, kg], about the parent's origin in parent axes.

        Args:
            M: A symmetric mass matrix about the child's origin, (6, 6), [kg m^2, kg m, kg], child axes.
        """
        raise NotImplementedError

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        """Return (rotation matrix (3, 3), origin (3,) [m]) of the child in an outer frame.

        Args:
            rotation: The parent's rotation matrix, (3, 3), parent axes to outer axes.
            origin: The parent's origin in the outer frame, (3,), [m], outer axes.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Translation(ElementaryTransform):
    """Translation of the origin by r, (3,), [m], in the current axes."""

    r: Array

    def twist(self, t: Array) -> Array:
        return join(t[:3], t[3:] + cross(t[:3], self.r))

    def twist_rate(self, t: Array, td: Array) -> Array:
        return join(td[:3], td[3:] + angular_acceleration_tensor(t[:3], td[:3]) @ self.r)

    def wrench(self, w: Array) -> Array:
        return join(w[:3] + cross(self.r, w[3:]), w[3:])

    def transform_inertia(self, M: Array) -> Array:
        for axis in (2, 1, 0):
            if not is_zero(self.r[axis]):
                M = _translate_inertia(M, axis, self.r[axis])
        return M

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return rotation, origin + rotation @ self.r


@dataclass(frozen=True)
class AxisRotation(ElementaryTransform):
    """Rotation about coordinate axis 0, 1 or 2 (x, y or z) by an angle with cosine c and sine s."""

    axis: int
    c: Scalar
    s: Scalar

    def twist(self, t: Array) -> Array:
        return join(self._to_child(t[:3]), self._to_child(t[3:]))

    def wrench(self, w: Array) -> Array:
        return AxisRotation(self.axis, self.c, -self.s).twist(w)

    def transform_inertia(self, M: Array) -> Array:
        return _symmetric_blocks(*(self.rotate_block(block) for block in (M[:3, :3], M[:3, 3:], M[3:, 3:])))

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return np.array([self._to_child(row) for row in rotation]), origin

    def _to_child(self, x: Array) -> Array:
        i, j = (self.axis + 1) % 3, (self.axis + 2) % 3
        y: list[Any] = [x[0], x[1], x[2]]
        y[i], y[j] = self.c * x[i] + self.s * x[j], self.c * x[j] - self.s * x[i]
        return np.array(y)

    def rotate_block(self, B: Array) -> Array:
        """Return R B R^T, (3, 3), in parent axes, with R the rotation matrix from child to parent components.

        It takes 12 multiplications instead of 24: of the 2x2 block normal to the axis only the traceless symmetric part
        depends on the angle, and it rotates by twice the angle.

        Args:
            B: A block of a mass matrix, (3, 3), [any unit], child axes.
        """
        k, i, j = self.axis, (self.axis + 1) % 3, (self.axis + 2) % 3
        c, s = self.c, self.s
        u = s * (B[i, i] - B[j, j]) + c * (B[i, j] + B[j, i])
        out: list[list[Any]] = [[0.0] * 3 for _ in range(3)]
        out[i][i], out[j][j] = B[i, i] - s * u, B[j, j] + s * u
        out[i][j], out[j][i] = c * u - B[j, i], c * u - B[i, j]
        out[i][k], out[j][k] = c * B[i, k] - s * B[j, k], s * B[i, k] + c * B[j, k]
        out[k][i], out[k][j] = c * B[k, i] - s * B[k, j], s * B[k, i] + c * B[k, j]
        out[k][k] = B[k, k]
        return np.array(out)


@dataclass(frozen=True)
class Rotation(ElementaryTransform):
    """Rotation by a general rotation matrix R, (3, 3), from child components to parent components."""

    R: Array

    def twist(self, t: Array) -> Array:
        return join(self.R.T @ t[:3], self.R.T @ t[3:])

    def wrench(self, w: Array) -> Array:
        return join(self.R @ w[:3], self.R @ w[3:])

    def transform_inertia(self, M: Array) -> Array:
        R = self.R
        return _symmetric_blocks(mirror(R @ M[:3, :3] @ R.T), self.rotate_block(M[:3, 3:]), mirror(R @ M[3:, 3:] @ R.T))

    def rotate_block(self, B: Array) -> Array:
        """Return R B R^T, (3, 3), in parent axes.

        Args:
            B: A block of a mass matrix, (3, 3), [any unit], child axes.
        """
        return self.R @ B @ self.R.T

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return rotation @ self.R, origin


@dataclass(frozen=True)
class Transform:
    """Coordinate transform from a parent frame to a child frame, a sequence of elementary steps."""

    steps: tuple[ElementaryTransform, ...]

    def __matmul__(self, t: Array) -> Array:
        """Return the child's twist, (6,), from the parent's, (6,), [rad/s, m/s], each in its own axes."""
        for step in self.steps:
            t = step.twist(t)
        return t

    def twist_and_rate(self, t: Array, td: Array) -> tuple[Array, Array]:
        """Return (t, td), both (6,), [rad/s, m/s] and [rad/s^2, m/s^2], of a child fixed to its parent, child axes.

        The twist rate holds components of [omega dot; acceleration of the origin] in the frame's axes, so it includes
        the centripetal term: td_child = A td + Adot t.

        Args:
            t: The parent's twist, (6,), [rad/s, m/s], parent axes.
            td: The parent's twist rate, (6,), [rad/s^2, m/s^2], parent axes.
        """
        for step in self.steps:
            t, td = step.twist(t), step.twist_rate(t, td)
        return t, td

    @property
    def T(self) -> TransposedTransform:
        """The transpose X.T."""
        return TransposedTransform(self)

    def transform_inertia(self, M: Array) -> Array:
        """Return X.T @ M @ X, (6, 6), [kg m^2, kg m, kg], about the parent's origin in parent axes.

        Args:
            M: A symmetric mass matrix about the child's origin, (6, 6), [kg m^2, kg m, kg], child axes.
        """
        for step in reversed(self.steps):
            M = step.transform_inertia(M)
        return M

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        """Return (rotation matrix (3, 3), origin (3,) [m]) of the child in an outer frame.

        Args:
            rotation: The parent's rotation matrix, (3, 3), parent axes to outer axes.
            origin: The parent's origin in the outer frame, (3,), [m], outer axes.
        """
        for step in self.steps:
            rotation, origin = step.child_pose(rotation, origin)
        return rotation, origin


@dataclass(frozen=True)
class TransposedTransform:
    """The transpose X.T of a transform, which carries wrenches from child to parent."""

    X: Transform

    def __matmul__(self, w: Array) -> Array:
        """Return the wrench about the parent's origin, (6,), [N m, N], of a child's wrench, each in its own axes."""
        for step in reversed(self.X.steps):
            w = step.wrench(w)
        return w


def _translate_inertia(M: Array, axis: int, d: Scalar) -> Array:
    """Return X.T @ M @ X, (6, 6), for the translation X by d [m] along one coordinate axis e.

    With r = d e: H' = H + r~ B and I' = I + r~ H.T + (r~ H'.T).T, written out so that each product is formed once.
    """
    i, j, k = (axis + 1) % 3, (axis + 2) % 3, axis
    wide = np.result_type(M, np.asarray(d))
    inertia, H, B = M[:3, :3].astype(wide), M[:3, 3:].astype(wide), M[3:, 3:]
    old = H.copy()
    H[i] = [H[i, c] - d * B[j, c] for c in range(3)]
    H[j] = [H[j, c] + d * B[i, c] for c in range(3)]
    inertia[i, i] = inertia[i, i] - d * (old[i, j] + H[i, j])
    inertia[j, j] = inertia[j, j] + d * (old[j, i] + H[j, i])
    inertia[i, j] = inertia[j, i] = inertia[i, j] + d * (H[i, i] - old[j, j])
    inertia[i, k] = inertia[k, i] = inertia[i, k] - d * H[k, j]
    inertia[j, k] = inertia[k, j] = inertia[j, k] + d * H[k, i]
    return _symmetric_blocks(inertia, H, B)


def _symmetric_blocks(top: Array, side: Array, low: Array) -> Array:
    """Return [[top, side], [side.T, low]], as `np.block` does, in a quarter of the time."""
    return np.concatenate([np.concatenate([top, side], axis=1), np.concatenate([side.T, low], axis=1)])


def mirror(S: Array) -> Array:
    """Return a symmetric matrix, (n, n), with the upper triangle of S.

    For products that are symmetric in exact arithmetic: the lower triangle is then not computed by traced code.

    Args:
        S: A matrix, (n, n), [any unit], symmetric up to rounding.
    """
    n = len(S)
    return np.array([[S[min(i, j), max(i, j)] for j in range(n)] for i in range(n)]).reshape(n, n)


def factor_symmetric(S: Array) -> tuple[list[list[Any]], list[Any]]:
    """Return (L, reciprocals of D) of S = L D L^T, without pivoting.

    A pivot of floats that is not positive beyond rounding gives NaN, which callers report.

    Args:
        S: A symmetric positive definite matrix, (n, n), [any unit].
    """
    n = len(S)
    L: list[list[Any]] = [[0.0] * n for _ in range(n)]
    reciprocal: list[Any] = []
    for i in range(n):
        row: list[Any] = []  # L[i] D
        for k in range(i):
            row.append(S[i, k] - sum_of(L[k][m] * row[m] for m in range(k)))
            L[i][k] = row[k] * reciprocal[k]
        pivot = S[i, i] - sum_of(L[i][k] * row[k] for k in range(i))
        reciprocal.append(np.nan if is_singular(pivot, S[i, i], _ROUNDING) else 1.0 / pivot)
    return L, reciprocal


def sum_of(terms: Iterable[Any]) -> Any:
    """Return the sum of the terms, 0.0 if there are none."""
    total: Any = 0.0
    for term in terms:
        total = total + term
    return total


def solve_factored(factors: tuple[list[list[Any]], list[Any]], b: Array) -> Array:
    """Return x, (n,), with L D L^T x = b.

    Args:
        factors: (L, reciprocals of D) as `factor_symmetric` returns them. b: The right-hand side, (n,), [any unit].
    """
    L, reciprocal = factors
    n = len(reciprocal)
    y: list[Any] = []
    for i in range(n):
        y.append(b[i] - sum_of(L[i][k] * y[k] for k in range(i)))
    x = [y[i] * reciprocal[i] for i in range(n)]
    for i in reversed(range(n)):  # the entry solved last is subtracted last, which keeps the dependence chain short
        x[i] = x[i] - sum_of(L[k][i] * x[k] for k in reversed(range(i + 1, n)))
    return np.array(x)


def solve_symmetric(S: Array, b: Array) -> Array:
    """Return x, (n,), with S x = b.

    Args:
        S: A symmetric positive definite matrix, (n, n), [any unit]. b: The right-hand side, (n,), [any unit].
    """
    return solve_factored(factor_symmetric(S), b)


def is_zero(x: Scalar) -> bool:
    """Return whether x is the number zero. A traced scalar never is, since a zero is folded to a plain number."""
    return (isinstance(x, (int, float)) and x == 0) or (type(x) is Element and x.is_zero)


def is_finite(x: Scalar) -> bool:
    """Return whether x is a finite plain number, or a traced scalar, which stands for finite numbers."""
    return not isinstance(x, (int, float)) or math.isfinite(x)
