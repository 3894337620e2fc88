"""Inverse dynamics as a linear function of the links' inertial parameters: tau = Y(q, v, vdot) @ parameters."""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import transform_forces
from legged.compiler.ir.annotations import items, stage
from legged.dynamics.arguments import read
from legged.dynamics.sweeps import inward, transforms, twists_and_rates
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.spatial import Array, angular_acceleration_tensor, cross, join

PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Of a link: mass [kg], first moment [kg m], and inertia about the link origin [kg m^2], link axes."""
_TENSOR_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


def inertial_parameters(robot: Robot) -> Array:
    """Return the inertial parameters of all links, (10 n_links,), in the order of `robot.links` and of `PARAMETERS`."""
    parameters = []
    for link in robot.links:
        inertia = link.inertia
        first_moment = inertia.mass * np.asarray(inertia.center)
        parameters.append([inertia.mass, *first_moment, *(inertia.about_origin[ij] for ij in _TENSOR_ENTRIES)])
    return np.array(parameters, float).ravel()


def inverse_dynamics_regressor(robot: Robot, q: Array, v: Array, vdot: Array) -> Array:
    """Return Y, (nv, 10 n_links), such that Y @ parameters are the generalized inertial and gravity forces.

    Inverse dynamics adds to these the forces of the joints (friction, springs, armature, rotors) and subtracts external
    wrenches, which do not depend on the inertial parameters.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,).

    Source: Atkeson, An, Hollerbach 1986, "Estimation of inertial parameters of manipulator loads and links".
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    with stage("1 twists and rates"):
        t, td = twists_and_rates(robot, q, v, vdot)
        X = transforms(robot, q)
    with stage("2 wrenches of the links"):
        wrenches = [_link_regressor(link, t[link.body], td[link.body]) for link in items(robot.links)]
    Y = np.zeros((robot.nv, 10 * len(wrenches)), dtype=np.result_type(*wrenches))
    carried: list[list[tuple[int, Array]]] = [[] for _ in robot.bodies]
    for link, wrench in zip(robot.links, wrenches, strict=True):
        carried[link.body].append((link.index, wrench))
    with stage("3 inward"):
        for body in inward(robot):
            P = robot.base.motion_matrix(q) if body.parent < 0 else body.P
            for link, wrench in carried[body.index]:
                Y[body.v, 10 * link : 10 * link + 10] += P.T @ wrench
                if body.parent >= 0:
                    carried[body.parent].append((link, transform_forces(X[body.index], wrench)))
    return Y


def _link_regressor(link: PlacedLink, t: Array, td: Array) -> Array:
    """Return the wrench about the body origin, body axes, per parameter of a link, (6, 10).

        f = m a_O + Phi h,      n = h x a_O + I omegad + omega x I omega

    Args:
        link: The link. t, td: Twist of its body and its rate, [omega dot; acceleration of the origin], body axes.
    """
    R = link.rotation
    Phi = R.T @ angular_acceleration_tensor(t[:3], td[:3]) @ R
    a = R.T @ (td[3:] + angular_acceleration_tensor(t[:3], td[:3]) @ link.position)
    omega, omegad = R.T @ t[:3], R.T @ td[:3]
    wrenches = [join(np.zeros(3), a), *(join(cross(e, a), Phi @ e) for e in np.eye(3))]
    for i, j in _TENSOR_ENTRIES:
        E = np.zeros((3, 3))
        E[i, j] = E[j, i] = 1.0
        wrenches.append(join(E @ omegad + cross(omega, E @ omega), np.zeros(3)))
    in_body_axes = [(R @ w[:3], R @ w[3:]) for w in wrenches]
    return np.stack([join(n + cross(link.position, f), f) for n, f in in_body_axes], axis=1)
