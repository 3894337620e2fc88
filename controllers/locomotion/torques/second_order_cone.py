"""The second-order cone of three numbers, x_0 >= |(x_1, x_2)|, for interior-point methods, over any element.

Source: Vandenberghe, "The CVXOPT linear and quadratic cone program solvers", 2010, sections 4 and 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.compiler.ir import where
from legged.spatial import Array

_TINY = 1e-30  # least determinant, for points at the boundary within rounding
_NO_DIRECTION = 1e-12  # length of (w_1, w_2) below which W is a multiple of the identity within rounding


def size(x: Array) -> Any:
    """Return |(x_1, x_2)|, in the unit of x.

    Args:
        x: (3,), [any unit].
    """
    return np.sqrt(x[1] * x[1] + x[2] * x[2] + _TINY)


def interior(x: Array, margin: Any) -> Array:
    """Return x, (3,), with x_0 raised to at least margin + |(x_1, x_2)|.

    Args:
        x: (3,), [any unit]. margin: In the unit of x, positive.
    """
    return np.array([np.maximum(x[0], size(x) + margin), x[1], x[2]])


def product(x: Array, y: Array) -> Array:
    """Return the Jordan product, (3,): x^T y and x_0 (y_1, y_2) + y_0 (x_1, x_2).

    Args:
        x: (3,), [any unit]. y: (3,), [any unit].
    """
    return np.array([x @ y, x[0] * y[1] + y[0] * x[1], x[0] * y[2] + y[0] * x[2]])


def quotient(x: Array, y: Array) -> Array:
    """Return the u, (3,), whose Jordan product with x is y.

    Args:
        x: A point inside the cone, (3,), [any unit]. y: (3,), [any unit].
    """
    first = (x[0] * y[0] - x[1] * y[1] - x[2] * y[2]) / determinant(x)
    inverse = 1.0 / x[0]
    return np.array([first, inverse * (y[1] - first * x[1]), inverse * (y[2] - first * x[2])])


def determinant(x: Array) -> Any:
    """Return x_0^2 - x_1^2 - x_2^2 without cancellation, at least a tiny number.

    Args:
        x: A point inside the cone, (3,), [any unit].
    """
    t = size(x)
    return np.maximum((x[0] - t) * (x[0] + t), _TINY)


def boundary_ratio(x: Array, d: Array) -> Any:
    """Return the least r with x + t d in the cone for all 0 <= t <= 1 / r, where r is positive.

    Args:
        x: A point inside the cone, (3,), [any unit]. d: A direction, (3,), [any unit].
    """
    inverse = 1.0 / np.sqrt(determinant(x))
    u = inverse * x
    first = inverse * (u[0] * d[0] - u[1] * d[1] - u[2] * d[2])
    factor = (first + inverse * d[0]) / (u[0] + 1.0)
    return size(np.array([0.0, inverse * d[1] - factor * u[1], inverse * d[2] - factor * u[2]])) - first


class Scaling(NamedTuple):
    """The symmetric W of Nesterov and Todd, with W z = W^-1 s, for s and z inside the cone.

    Attributes:
        eta: Scale. w: Direction, (3,), of determinant 1.
    """

    eta: Any
    w: Array

    @classmethod
    def of(cls, s: Array, z: Array) -> Scaling:
        """Return the scaling of two points inside the cone.

        Args:
            s: (3,), [any unit]. z: (3,), [any unit].
        """
        a, b = np.sqrt(determinant(s)), np.sqrt(determinant(z))
        s, z = s / a, z / b
        factor = 1.0 / np.sqrt(2.0 + 2.0 * (s @ z))
        return cls(np.sqrt(a / b), factor * np.array([s[0] + z[0], s[1] - z[1], s[2] - z[2]]))

    def __matmul__(self, x: Array) -> Array:
        """Return W x, (3,)."""
        return self.eta * self._reflected(x, self.w[1], self.w[2])

    def inverse(self, x: Array) -> Array:
        """Return W^-1 x, (3,).

        Args:
            x: (3,), [any unit].
        """
        return self._reflected(x, -self.w[1], -self.w[2]) / self.eta

    def _reflected(self, x: Array, w_1: Any, w_2: Any) -> Array:
        along = w_1 * x[1] + w_2 * x[2]
        factor = x[0] + along / (1.0 + self.w[0])
        return np.array([self.w[0] * x[0] + along, x[1] + factor * w_1, x[2] + factor * w_2])

    @property
    def axes(self) -> Array:
        """Eigenvectors of W, (3, 3), its columns: (1, u), (1, -u) and (0, u turned by 90 degrees), of unit length."""
        length = size(self.w)
        u_1 = where(length > _NO_DIRECTION, self.w[1] / length, 1.0)
        u_2 = where(length > _NO_DIRECTION, self.w[2] / length, 0.0)
        h = np.sqrt(0.5)
        return np.array([[h, h, 0.0], [h * u_1, -h * u_1, -u_2], [h * u_2, -h * u_2, u_1]])

    @property
    def weights(self) -> Array:
        """Eigenvalues of W^-2, (3,), in the order of `axes`."""
        p, scale = self.w[0] + size(self.w), 1.0 / (self.eta * self.eta)
        return scale * np.array([1.0 / (p * p), p * p, 1.0])
