"""The diagonalized equations of motion, in innovations and residuals (section 6)."""

from __future__ import annotations

import numpy as np

from legged import taylor
from legged.algorithms.operators.dynamics import bias_forces
from legged.algorithms.operators.operator import Operator
from legged.algorithms.operators.spatial_operators import SpatialOperators
from legged.dynamics.arguments import Wrenches, read
from legged.robot.configuration import configuration_rate, scatter
from legged.robot.robot import Robot
from legged.spatial import Array


def root(operators: SpatialOperators) -> Operator:
    """Return D^(1/2) as the operator C with C C* = D, memoryless: for joints of one freedom the square root."""
    S = operators
    blocks = {body.index: _root(*S.joint_factors(body)) for body in S.robot.bodies}

    def act(x: Array, transposed: bool) -> Array:
        parts = ((b.v, (blocks[b.index].T if transposed else blocks[b.index]) @ x[b.v]) for b in S.robot.bodies)
        return scatter(S.robot.nv, parts)

    return Operator(S.robot.nv, S.robot.nv, lambda x: act(x, False), lambda x: act(x, True), "D^1/2")


def _root(L: list, reciprocals: list) -> Array:
    n = len(reciprocals)
    unit = np.array([[1.0 if i == j else L[i][j] for j in range(n)] for i in range(n)]).reshape(n, n)
    return unit * np.sqrt(np.array([1.0 / r for r in reciprocals]))


def residuals(operators: SpatialOperators, v: Array) -> Array:
    """Return nu = D^(1/2)* (I + H phi K)* v, (nv,), [sqrt(J)]: the kinetic energy is nu . nu / 2.

    Args:
        operators: Of a robot at q. v: Velocity, (nv,).
    """
    S = operators
    return root(S).T @ (S.innovations.T @ v)


def innovations(operators: SpatialOperators, tau: Array) -> Array:
    """Return epsilon = D^(-1/2) (I - H psi K) tau, (nv,), [W / sqrt(J)]: nu . epsilon is the power of the forces.

    Args:
        operators: Of a robot at q. tau: Generalized forces, (nv,).

    Source: Rodriguez, Jain, Kreutz-Delgado 1991, section 6; they print phi for psi.
    """
    S = operators
    return root(S).T @ (S.D_inverse @ (S.whitening @ tau))


def drift(robot: Robot, q: Array, v: Array, wrenches: Wrenches = None) -> Array:
    """Return mu, (nv,), of the diagonalized equations of motion nu_dot + mu = epsilon.

        mu = D^(-1/2) (I - H psi K) C - d/dt (D^(1/2)* (I + H phi K)*) v

    The time derivative is exact: the operators are applied to a configuration that moves, a Taylor series in time.
    Without gravity and friction mu does no work, nu . mu = 0.

    Args:
        robot, q, v, wrenches: As in `legged.bias_forces`.
    """
    q, v = read(robot, q=q, v=v)
    S = SpatialOperators(robot, q)
    rate = configuration_rate(robot, q, v)
    moving = SpatialOperators(robot, taylor.moving(q, rate, 0.0 * rate))
    _, changing, _ = taylor.derivatives(residuals(moving, v))
    return innovations(S, bias_forces(S, v, wrenches)) - changing
