"""Six-dimensional vectors and matrices, angular part first, over any element.

A twist t = [omega; v] and a wrench w = [n; f] are taken at a frame's origin and written in its axes. A `Transform`
leads from a parent frame to a child frame as a tuple of elementary steps (shift the origin, turn the axes), so that

    X @ t                   carries a twist from parent to child,
    X.T @ w                 carries a wrench from child to parent,
    X.transform_inertia(M)  is X.T @ M @ X, the child's mass matrix as the parent sees it.

Each step is a mostly-zero 6x6 matrix; applying steps one after the other is what keeps the operation counts low.
Every function takes arrays of floats or of `Expression` alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_ROUNDING = 1e-15  # of a diagonal entry: what is left of it where algebra leaves nothing
Array = np.ndarray
Scalar = Any  # a float or an Expression


def cross(a: Array, b: Array) -> Array:
    """Return a x b, (3,)."""
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def skew(a: Array) -> Array:
    """Return the (3, 3) matrix a~ with a~ @ b = a x b."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


def join(top: Array, bottom: Array) -> Array:
    """Return the 6-vector [top; bottom]."""
    return np.concatenate([top, bottom])


def angular_acceleration_tensor(omega: Array, omegad: Array) -> Array:
    """Return Phi = omegad~ + omega~ omega~, (3, 3): a point at r from the origin accelerates by Phi @ r more."""
    x, y, z = omega
    xd, yd, zd = omegad
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array(
        [[-(yy + zz), xy - zd, xz + yd], [xy + zd, -(xx + zz), yz - xd], [xz - yd, yz + xd, -(xx + yy)]],
    )


def mass_matrix(mass: Scalar, h: Array, inertia: Array) -> Array:
    """Return M of equation (19), (6, 6), about the origin O of the body's frame.

        M = [  I    h~ ]       h = m d
            [ -h~   m1 ]

    Args:
        mass: m, [kg].
        h: First moment of mass m d, d from O to the center of mass, (3,), [kg m].
        inertia: I, about O, (3, 3), [kg m^2].

    Source: Shah, Saha, Dutt 2012, eq. (19).
    """
    return np.block([[inertia, skew(h)], [-skew(h), mass * np.eye(3)]])


@dataclass(frozen=True)
class Translation:
    """Move the origin by r, (3,), [m], in the present axes."""

    r: Array

    def twist(self, t: Array) -> Array:
        return join(t[:3], t[3:] + cross(t[:3], self.r))

    def rate(self, t: Array, td: Array) -> Array:
        return join(td[:3], td[3:] + angular_acceleration_tensor(t[:3], td[:3]) @ self.r)

    def wrench(self, w: Array) -> Array:
        return join(w[:3] + cross(self.r, w[3:]), w[3:])

    def transform_inertia(self, M: Array) -> Array:
        for axis in (2, 1, 0):
            if not is_zero(self.r[axis]):
                M = _pull_shift(M, axis, self.r[axis])
        return M

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return rotation, origin + rotation @ self.r


@dataclass(frozen=True)
class AxisRotation:
    """Turn the axes about one of them (0, 1, 2) by an angle with cosine c and sine s."""

    axis: int
    c: Scalar
    s: Scalar

    def twist(self, t: Array) -> Array:
        return join(self._to_child(t[:3]), self._to_child(t[3:]))

    def rate(self, t: Array, td: Array) -> Array:
        return self.twist(td)

    def wrench(self, w: Array) -> Array:
        return join(self._to_parent(w[:3]), self._to_parent(w[3:]))

    def transform_inertia(self, M: Array) -> Array:
        top, side, low = (self.rotate_block(b) for b in (M[:3, :3], M[:3, 3:], M[3:, 3:]))
        return np.block([[top, side], [side.T, low]])

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return np.array([self._to_child(row) for row in rotation]), origin

    def _to_child(self, x: Array) -> Array:
        i, j = (self.axis + 1) % 3, (self.axis + 2) % 3
        y: list[Any] = [x[0], x[1], x[2]]
        y[i], y[j] = self.c * x[i] + self.s * x[j], self.c * x[j] - self.s * x[i]
        return np.array(y)

    def _to_parent(self, x: Array) -> Array:
        return AxisRotation(self.axis, self.c, -self.s)._to_child(x)

    def rotate_block(self, B: Array) -> Array:
        """Return R B R^T for R the turn, with 12 multiplications instead of 24: only the 2x2 part's traceless
        symmetric half turns, by the double angle."""
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
class Rotation:
    """Turn the axes by a general rotation; R, (3, 3), turns child components into parent components."""

    R: Array

    def twist(self, t: Array) -> Array:
        return join(self.R.T @ t[:3], self.R.T @ t[3:])

    def rate(self, t: Array, td: Array) -> Array:
        return self.twist(td)

    def wrench(self, w: Array) -> Array:
        return join(self.R @ w[:3], self.R @ w[3:])

    def transform_inertia(self, M: Array) -> Array:
        R = self.R
        top, side, low = mirror(R @ M[:3, :3] @ R.T), self.rotate_block(M[:3, 3:]), mirror(R @ M[3:, 3:] @ R.T)
        return np.block([[top, side], [side.T, low]])

    def rotate_block(self, B: Array) -> Array:
        """Return R B R^T, (3, 3)."""
        return self.R @ B @ self.R.T

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        return rotation @ self.R, origin


@dataclass(frozen=True)
class Transform:
    """The way from a parent frame to a child frame, step by step."""

    steps: tuple[Translation | AxisRotation | Rotation, ...]

    def __matmul__(self, t: Array) -> Array:
        """Return a parent twist (6,) as the child sees it."""
        for step in self.steps:
            t = step.twist(t)
        return t

    def rate(self, t: Array, td: Array) -> tuple[Array, Array]:
        """Return (t, td), a parent's twist and twist rate, both (6,), at a child fixed to it.

        The twist rate holds components of [omega dot; acceleration of the origin] in the frame's axes, so it carries
        the centripetal term: td_child = A td + Adot t.
        """
        for step in self.steps:
            t, td = step.twist(t), step.rate(t, td)
        return t, td

    @property
    def T(self) -> TransposedTransform:
        return TransposedTransform(self)

    def transform_inertia(self, M: Array) -> Array:
        """Return X.T @ M @ X, (6, 6), for a symmetric M of the child."""
        for step in reversed(self.steps):
            M = step.transform_inertia(M)
        return M

    def child_pose(self, rotation: Array, origin: Array) -> tuple[Array, Array]:
        """Return the child's rotation (3, 3) and origin (3,), given the parent's, both in some outer frame."""
        for step in self.steps:
            rotation, origin = step.child_pose(rotation, origin)
        return rotation, origin


@dataclass(frozen=True)
class TransposedTransform:
    """X.T: wrenches from child to parent."""

    X: Transform

    def __matmul__(self, w: Array) -> Array:
        for step in reversed(self.X.steps):
            w = step.wrench(w)
        return w


def _pull_shift(M: Array, axis: int, d: Scalar) -> Array:
    """Return the mass matrix M seen from an origin that lies -d along one axis: X.T @ M @ X for that shift.

    With r = d e: H' = H + r~ B and I' = I + r~ H.T + (r~ H'.T).T, written out so that each product stands once.
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
    return np.block([[inertia, H], [H.T, B]])


def mirror(S: Array) -> Array:
    """Return S with its lower triangle copied from the upper: for results that algebra makes symmetric."""
    n = len(S)
    return np.array([[S[min(i, j), max(i, j)] for j in range(n)] for i in range(n)])


def with_rows(x: Array, indices: tuple[int, ...], rows: Array) -> Array:
    """Return a vector, or a symmetric matrix, with the given entries, or rows and columns: algebra has them shorter."""
    x = x.astype(np.result_type(x, rows))
    for i, row in zip(indices, rows, strict=True):
        x[i] = row
        x[..., i] = row
    return x


def factor_symmetric(S: Array) -> tuple[list[list[Any]], list[Any]]:
    """Return (L, reciprocals of D) of S = L D L^T for a symmetric positive definite S, (n, n), without pivoting.

    Plain numbers that are not positive definite give NaN; see `_inverse_pivot`.
    """
    n = len(S)
    L: list[list[Any]] = [[0.0] * n for _ in range(n)]
    reciprocal: list[Any] = []
    for i in range(n):
        row: list[Any] = []  # L[i] D
        for k in range(i):
            row.append(S[i, k] - sum_of(L[k][m] * row[m] for m in range(k)))
            L[i][k] = row[k] * reciprocal[k]
        reciprocal.append(_inverse_pivot(S[i, i] - sum_of(L[i][k] * row[k] for k in range(i)), S[i, i]))
    return L, reciprocal


def _inverse_pivot(pivot: Scalar, whole: Scalar) -> Scalar:
    """Return 1 / pivot; NaN for a plain number that is not positive beyond rounding, for callers to refuse."""
    if isinstance(pivot, (int, float)):
        return 1.0 / pivot if pivot > _ROUNDING * whole else np.nan
    return 1.0 / pivot


def sum_of(terms) -> Any:
    """Return the sum of an iterable of elements, 0.0 when empty."""
    total: Any = 0.0
    for term in terms:
        total = total + term
    return total


def solve_factored(factors: tuple[list[list[Any]], list[Any]], b: Array) -> Array:
    """Return x with L D L^T x = b, (n,)."""
    L, reciprocal = factors
    n = len(reciprocal)
    y: list[Any] = []
    for i in range(n):
        y.append(b[i] - sum_of(L[i][k] * y[k] for k in range(i)))
    x = [y[i] * reciprocal[i] for i in range(n)]
    for i in reversed(range(n)):  # the newest of the others is taken last: nothing waits for it but one operation
        x[i] = x[i] - sum_of(L[k][i] * x[k] for k in reversed(range(i + 1, n)))
    return np.array(x)


def solve_symmetric(S: Array, b: Array) -> Array:
    """Return x with S x = b for a symmetric positive definite S, (n, n), b (n,)."""
    return solve_factored(factor_symmetric(S), b)


def is_zero(x: Scalar) -> bool:
    """Tell whether x is the plain number zero (an Expression never is: it would have folded)."""
    return isinstance(x, (int, float)) and x == 0
