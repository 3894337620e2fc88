"""Forward and inverse dynamics of a robot some of whose contact points are held in place by the ground."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from legged.algorithms.constrained.methods import elimination
from legged.algorithms.linear_algebra import factor_semidefinite, independent_rows
from legged.checked import checked
from legged.dynamics.arguments import Wrenches, finite, read
from legged.dynamics.inverse import bias_forces, inverse_dynamics
from legged.dynamics.kinematics import point_accelerations, point_jacobian
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, solve_factored


class ContactDynamics(NamedTuple):
    """The result of `contact_dynamics`.

    Attributes:
        vdot: Acceleration, (nv,).
        forces: Force of the ground on each contact point, (n, 3), [N], world axes.
    """

    vdot: Array
    forces: Array


class ContactInverseDynamics(NamedTuple):
    """The result of `contact_inverse_dynamics`.

    Attributes:
        tau: Generalized forces, (nv,), [N m] or [N], base rows first; those are the part that contacts cannot apply.
        forces: Force of the ground on each contact point, (n, 3), [N], world axes.
    """

    tau: Array
    forces: Array


@checked
def contact_dynamics(
    robot: Robot, q: Array, v: Array, tau: Array, contacts: Sequence[str], wrenches: Wrenches = None
) -> ContactDynamics:
    """Return the acceleration of a robot whose contact points do not accelerate, and the forces on these points.

        I vdot = tau - h + J^T f,      J vdot + Jdot v = 0

    The points are held in both directions: a force may pull, and friction is not limited. For unilateral contact, see
    `legged.contact` and `legged.ground`. Several points of one foot have redundant constraints: their forces are those
    of least norm for numbers, and those of the first independent points for traced values.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,), with the contact points at rest. tau: Generalized forces, (nv,),
            base rows first.
        contacts: Names of the contact points that stand.
        wrenches: Other external wrenches on links, as in `legged.forward_dynamics`.

    Raises:
        UnknownNameError: For an unknown contact point. The errors of `legged.forward_dynamics`.

    Source: Featherstone, Orin 2000, section 3.4, eq. (21).
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    points = _points(robot, contacts)
    velocity_products = point_accelerations(robot, q, v, np.zeros(robot.nv), points).reshape(-1)
    rows = independent_rows(_jacobian(robot, q, points), -velocity_products)
    vdot, forces = elimination(robot, q, rows, tau - bias_forces(robot, q, v, wrenches))
    vdot = finite(robot, "the contact dynamics", vdot)
    return ContactDynamics(vdot, (rows.combinations @ forces).reshape(-1, 3))


@checked
def contact_inverse_dynamics(
    robot: Robot, q: Array, v: Array, vdot: Array, contacts: Sequence[str], wrenches: Wrenches = None
) -> ContactInverseDynamics:
    """Return the generalized forces for an acceleration, and the forces on contact points that support the base.

        tau + J^T f = I vdot + h

    f is the solution of least norm for which the base rows of tau vanish, or are smallest: two point feet, for example,
    apply no moment about the line between them. Forces may pull, and friction is not limited; `controllers.Balanced`
    and `controllers.WorkspaceBalance` distribute forces within limits. With a fixed base the forces are zero.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).
        contacts: Names of the contact points that stand.
        wrenches: Other external wrenches on links, as in `legged.inverse_dynamics`.

    Raises:
        UnknownNameError: For an unknown contact point. The errors of `legged.inverse_dynamics`.
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    required = inverse_dynamics(robot, q, v, vdot, wrenches)
    J = _jacobian(robot, q, _points(robot, contacts))
    rows = independent_rows(J[:, : robot.base.nv].T, required[: robot.base.nv])
    if not len(rows.L) or not len(J):
        return ContactInverseDynamics(required, np.zeros((len(contacts), 3)))
    S = mirror(rows.L @ rows.L.T)
    if rows.L.dtype == object:  # all rows, which may contradict each other: L L^T y = c in the sense of least squares
        multipliers = solve_factored(factor_semidefinite(mirror(S @ S)), S @ rows.c)
    else:
        multipliers = solve_factored(factor_symmetric(S), rows.c)
    forces = rows.L.T @ multipliers
    return ContactInverseDynamics(required - J.T @ forces, forces.reshape(-1, 3))


def _points(robot: Robot, contacts: Sequence[str]) -> list[tuple[str | int, Array]]:
    """Return (index of the link, position (3,), [m], link axes) of contact points."""
    return [(point.link, point.position) for point in map(robot.contact, contacts)]


def _jacobian(robot: Robot, q: Array, points: Sequence[tuple[str | int, Array]]) -> Array:
    """Return J, (3 n, nv), from v to the velocities of the points, world axes."""
    return np.concatenate([np.zeros((0, robot.nv)), *(point_jacobian(robot, q, *point)[3:] for point in points)])
