"""The largest step at which the contacts of a robot with compliant ground are stable.

Near rest on the ground, the contact points are pressed against springs and dampers: with the Jacobian J of the points,
their stiffness K and damping D, the velocities of the points follow u_dot = -A (D u + K x) with A = J M^-1 J^T. The
fastest mode, with eigenvalues d of A D and k of A K, limits the step h of an explicit method:

    semi-implicit Euler    h^2 k + 2 h d < 4
    Runge-Kutta 4          h |lambda| < 2.78,  lambda^2 + d lambda + k = 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import point_jacobian
from legged.ground.ground import Ground
from legged.robot.robot import Robot

if TYPE_CHECKING:
    from legged.simulation.integrators import FixedStep

Array = np.ndarray
_RUNGE_KUTTA_LIMIT = 2.78  # stability limit of the classical method on the negative real axis
_SMALL_SPEED = 1e-6  # [m/s], increment of the difference quotients of damping


def contact_modes(robot: Robot, ground: Ground, q: Array) -> tuple[float, float]:
    """Return the largest eigenvalues of A K and A D, [1/s^2] and [1/s]; see the module.

    Stiffness and damping are those of contact points that carry the robot's weight, half of the points at a time.

    Args:
        robot: The robot. ground: The ground. q: Configuration, (nq,).
    """
    points = len(robot.contacts)
    load = robot.mass * float(np.linalg.norm(robot.gravity)) / max(points // 2, 1)
    depth = ground.normal.rest_penetration(load)

    def normal(p: float, rate: float) -> float:
        return float(ground.normal.force(np.float64(p), np.float64(rate)))

    def friction(speed: float, deflection: float) -> float:
        memory = np.full(ground.friction.memory, deflection)
        return -float(ground.friction.force(np.float64(load), np.array([speed, 0.0]), memory)[0][0])

    small = 1e-3 * depth
    stiffness = (normal(depth + small, 0.0) - normal(depth - small, 0.0)) / (2.0 * small)
    damping = (normal(depth, _SMALL_SPEED) - load) / _SMALL_SPEED
    k_t, d_t = friction(0.0, 1e-9) / 1e-9, friction(_SMALL_SPEED, 0.0) / _SMALL_SPEED
    J = np.concatenate([np.asarray(point_jacobian(robot, q, c.link, c.position))[3:] for c in robot.contacts])
    A = J @ np.linalg.solve(inertia_matrix(robot, q), J.T)
    pairs = [[k_t, k_t, stiffness] * points, [d_t, d_t, damping] * points]
    k, d = (float(np.linalg.eigvals(A * np.array(diagonal)).real.max()) for diagonal in pairs)
    return max(k, 0.0), max(d, 0.0)


def largest_stable_step(robot: Robot, ground: Any, q: Array, integrator: type[FixedStep]) -> float:
    """Return the largest stable step on the ground near rest, [s]; infinite without compliant ground.

    Harder impacts and stiff gains may need shorter steps; half of it is a good choice.

    Args:
        robot: The robot. ground: The ground. q: Configuration, (nq,). integrator: Class of the integrator.
    """
    if not isinstance(ground, Ground) or not robot.contacts or not robot.gravity.any():
        return np.inf
    k, d = contact_modes(robot, ground, q)
    if not k > 0.0 or not np.isfinite([k, d]).all():
        return np.inf
    if integrator.rule == "runge_kutta":
        fastest = max(np.abs(np.roots([1.0, d, k])).tolist())
        return _RUNGE_KUTTA_LIMIT / fastest
    return float((np.sqrt(d * d + 4.0 * k) - d) / k)
