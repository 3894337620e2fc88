"""Frictionless contact of two rigid bodies that may be subject to other constraints: motion and force freedoms.

    N = contact_normals(points, directions)      # (6, c), the forces of the contact are N lambda
    T = contact_freedoms(N)                      # (6, 6 - c), relative velocities T alpha_dot
    motion, force = contact_projectors(N, Phi)   # decoupled by the mobility Phi of the bodies
    contact = contact_response(N, Nd_v, finger, tool)

All spatial vectors are in world axes about the world's origin: velocities [omega; v], forces [n; f], and accelerations,
which are the time derivatives of the velocities. Velocities and forces form two dual spaces; no inner product within
either of them is used, so results do not depend on units or origin.

Source: the abstracts of Featherstone, Sonck, Khatib, "A general contact model for dynamically-decoupled force/motion
control", Experimental Robotics V, 1998, of Featherstone 2003 (Robotics Research, the tenth symposium), and of
Featherstone, "Modeling and control of contact between constrained rigid bodies", IEEE Transactions on Robotics and
Automation 20(1), 2004. They state what the model is and what it achieves; the equations here are derived again.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from legged.algorithms.linear_algebra import (
    factor_semidefinite,
    independent_rows,
    orthonormal_complement,
    solve_columns,
)
from legged.algorithms.operational.space import by_factors
from legged.checked import checked
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.forward import forward_dynamics
from legged.dynamics.kinematics import link_poses, point_jacobian, point_twist_rates
from legged.elements import any_element
from legged.errors import ShapeError
from legged.moving_coordinates import spatial_acceleration
from legged.robot.robot import Robot
from legged.spatial import Array, cross, join, mirror, solve_factored

Normals = Annotated[Array, (6, None)]
"""N, (6, c), [m] and 1: spatial forces per unit of the contact forces, world axes, about the world's origin."""


@any_element
@checked
def contact_normals(points: Array, directions: Array) -> Array:
    """Return N = [p x n; n], (6, c), of frictionless point contacts, world axes, about the world's origin.

    Args:
        points: Contact points p, (c, 3), [m], world axes.
        directions: Unit normals n towards the first body, on which the contact exerts N lambda, (c, 3), dimensionless,
            world axes.
    """
    points, directions = np.asarray(points), np.asarray(directions)
    if points.ndim != 2 or points.shape[1] != 3 or directions.shape != points.shape:
        raise ShapeError(f"points and directions must both be (c, 3), got {points.shape} and {directions.shape}")
    columns = [join(cross(p, n), n) for p, n in zip(points, directions, strict=True)]
    return np.array(columns).reshape(-1, 6).T


@any_element
@checked
def contact_freedoms(N: Normals) -> Array:
    """Return T, (6, 6 - c), a basis of the relative velocities with N^T T = 0, world axes, about the world's origin.

    T has orthonormal columns of mixed units. Dependent normals are detected for numbers and not for traced values.

    Args:
        N: Normals, (6, c).
    """
    return orthonormal_complement(independent_rows(N.T, np.zeros(N.shape[1])).L.T)


@any_element
@checked
def contact_projectors(N: Normals, Phi: Annotated[Array, (6, 6)]) -> tuple[Array, Array]:
    """Return (P_M, P_F), (6, 6) each: the projectors of accelerations and forces for a mobility Phi, a = Phi f + b.

        P_F = N (N^T Phi N)^-1 N^T Phi,      P_M = 1 - P_F^T

    P_F projects forces onto span(N) along the forces f with N^T Phi f = 0, P_M accelerations onto the motion freedoms
    along Phi N. They decouple the equation of motion, Phi = P_M Phi P_M^T + P_F^T Phi P_F: a force in span(N) causes no
    acceleration in the freedoms, and a force (1 - P_F) f none against the contact. Any other symmetric positive Phi,
    such as a metric, gives projectors onto the same spaces that depend on the kinematic model of contact alone.

    Args:
        N: Normals, (6, c). Combinations against which Phi has no motion are left out.
        Phi: Mobility, symmetric, positive semidefinite, (6, 6), mixed units, world axes, about the world's origin; that
            of the relative motion is the sum of those of both bodies.
    """
    effect = Phi @ N
    P_F = N @ solve_columns(factor_semidefinite(mirror(N.T @ effect)), effect.T)
    return np.eye(6) - P_F.T, P_F


class BodyResponse(NamedTuple):
    """Acceleration a = Phi f + b of a body of a mechanism; zero Phi for a body of prescribed motion.

    Attributes:
        Phi: Mobility, (6, 6), mixed units: singular for a body with fewer than six freedoms.
        b: Spatial acceleration for f = 0, (6,), [rad/s^2, m/s^2]. Both in world axes, about the world's origin.
    """

    Phi: Array
    b: Array


class ContactResponse(NamedTuple):
    """The result of `contact_response`.

    Attributes:
        forces: Contact forces lambda, (c,), [N]; the wrench on the first body is N lambda, on the second -N lambda.
        first, second: Spatial accelerations of both bodies, (6,), [rad/s^2, m/s^2], world axes, about the world's
            origin.
    """

    forces: Array
    first: Array
    second: Array


@checked
def link_response(robot: Robot, q: Array, v: Array, tau: Array, link: str, wrenches: Wrenches = None) -> BodyResponse:
    """Return the response of a link to forces on it: Phi = J M^-1 J^T, and b under the forces tau.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
        tau: Generalized forces, (nv,), [N m] or [N], base rows first. link: Name of the link.
        wrenches: Other wrenches on links, as in `legged.forward_dynamics`.
    """
    q, v, tau = read(robot, q=q, v=v, tau=tau)
    Phi = by_factors(robot, q, [(link, _world_origin(robot, q, link))])
    vdot = forward_dynamics(robot, q, v, tau, wrenches)
    return BodyResponse(Phi, link_jacobian(robot, q, link) @ vdot + link_bias(robot, q, v, link))


@any_element
@checked
def contact_response(N: Normals, Nd_v: Array, first: BodyResponse, second: BodyResponse) -> ContactResponse:
    """Return contact forces and accelerations of two bodies in contact, from

        N^T (a_1 - a_2) + Nd^T (v_1 - v_2) = 0,    a_1 = Phi_1 N lambda + b_1,    a_2 = -Phi_2 N lambda + b_2.

    The contact is held in both directions. Forces of redundant normals, or of normals against which neither body can
    move, are zero.

    Args:
        N: Normals, (6, c). Nd_v: Nd^T (v_1 - v_2), (c,), [m/s^2], in the axes of the normals.
        first, second: Responses of the bodies.
    """
    factors = factor_semidefinite(mirror(N.T @ (first.Phi + second.Phi) @ N))
    forces = -solve_factored(factors, N.T @ (first.b - second.b) + np.asarray(Nd_v))
    wrench = N @ forces
    return ContactResponse(forces, first.Phi @ wrench + first.b, second.b - second.Phi @ wrench)


@any_element
def link_jacobian(robot: Robot, q: Array, link: str) -> Array:
    """Return the Jacobian of a link's spatial velocity, (6, nv), world axes, about the world's origin.

    Args:
        robot: The robot. q: Configuration, (nq,). link: Name of the link.
    """
    return point_jacobian(robot, q, link, _world_origin(robot, q, link))


@any_element
def link_bias(robot: Robot, q: Array, v: Array, link: str) -> Array:
    """Return a link's spatial acceleration at vdot = 0, (6,), [rad/s^2, m/s^2], world axes, about the world's origin.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). link: Name of the link.
    """
    origin = _world_origin(robot, q, link)
    (rate,) = point_twist_rates(robot, q, v, np.zeros(robot.nv), [(link, origin)])
    return spatial_acceleration(point_jacobian(robot, q, link, origin) @ v, rate)


def _world_origin(robot: Robot, q: Array, link: str) -> Array:
    """Return the world's origin, (3,), [m], link axes."""
    R, origins = link_poses(robot, q)
    index = robot.link(link).index
    return -R[index].T @ origins[index]
