"""The second-order cone of three numbers, x_0 >= |(x_1, x_2)|, for interior-point methods, over any element.

Source: Vandenberghe, "The CVXOPT linear and quadratic cone program solvers", 2010, sections 4 and 5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from legged.spatial import Array

_TINY = 1e-30  # least determinant, for points at the boundary within rounding


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

    def weight(self) -> Array:
        """Return W^-2 = (2 u u^T - J) / eta^2, (3, 3), with u = J w and J = diag(1, -1, -1)."""
        u = np.array([self.w[0], -self.w[1], -self.w[2]])
        scale = 1.0 / (self.eta * self.eta)
        return scale * (2.0 * np.outer(u, u) - np.diag([1.0, -1.0, -1.0]))
