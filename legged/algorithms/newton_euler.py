"""The recursive Newton-Euler algorithm for inverse dynamics, Featherstone and Orin, eqs. (3) to (8), and its regressor.

The regressor Y writes inverse dynamics as a linear function of the links' inertial parameters, tau = Y(q, v, vdot) @
parameters.
"""

from __future__ import annotations

import numpy as np

from legged.algorithms.links import Links, base_bias, links_at, transform_forces
from legged.compiler.ir import items, stage
from legged.dynamics.arguments import Wrenches, read
from legged.dynamics.modules import inward, outward, transforms, twists_and_rates
from legged.dynamics.passive import spring_forces, velocity_forces
from legged.elements import any_element
from legged.moving_coordinates import cross_force, cross_motion
from legged.robot.configuration import scatter_add
from legged.robot.link import PlacedLink
from legged.robot.robot import Robot
from legged.spatial import Array, angular_acceleration_tensor, cross, join


@any_element
def inverse_dynamics(
    robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None, *, coordinates: str = "link"
) -> Array:
    """Return the generalized forces that produce an acceleration, (nv,), by the recursive Newton-Euler algorithm.

        v_i   = v_p + h_i qd_i                                    (3)
        a_i   = a_p + h_i qdd_i + v_i x h_i qd_i                  (4)
        f_i   = I_i a_i + v_i x I_i v_i - f_i^x + sum of f_j      (7), over the children j
        tau_i = h_i^T f_i                                         (8)

    Args:
        robot, q, v, vdot, wrenches: As in `legged.inverse_dynamics`.
        coordinates: "link" or "absolute", see `links_at`.

    Raises:
        As `legged.inverse_dynamics`; UnknownNameError for other coordinates.

    Source: Featherstone, Orin 2000, section 3.1; accelerations are spatial ones (their footnote 1).
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    links = links_at(robot, q, coordinates)
    with stage("1 velocities, accelerations, forces"):
        f, tau_joint = _outward(links, q, v, vdot, wrenches)
    with stage("2 joint forces"):
        return _inward(links, f, tau_joint)


def velocities(links: Links, v: Array) -> list[Array]:
    """Return the spatial velocity of each body, (6,), in the coordinates of the links: equation (3).

    Args:
        links: The robot's bodies. v: Velocity, (nv,).
    """
    twists: list[Array] = []
    for body in outward(links.robot):
        joint = links.h[body.index] @ v[body.v] if body.nv else np.zeros(6)
        twists.append(joint if body.parent < 0 else links.X[body.index] @ twists[body.parent] + joint)
    return twists


def _outward(links: Links, q: Array, v: Array, vdot: Array, wrenches: Wrenches) -> tuple[list[Array], list[Array]]:
    """Return (f_i of each body without its children, forces of friction, springs and rotors of each joint)."""
    t, external = velocities(links, v), links.wrenches(wrenches)
    a: list[Array] = []
    f, tau_joint = [], []
    for body in outward(links.robot):
        k, h = body.index, links.h[body.index]
        if body.is_base:
            a.append(base_bias(links, q, v) + (h @ vdot[body.v] if body.nv else 0.0))
        else:
            a.append(links.X[k] @ a[body.parent] + h @ vdot[body.v] + cross_motion(t[k], h @ v[body.v]))
        f_k = links.I[k] @ a[k] + cross_force(t[k], links.I[k] @ t[k])
        f.append(f_k - external[k] if k in external else f_k)
        tau_joint.append(velocity_forces(body, v) + spring_forces(body, q))
        if body.has_gyroscopic_rotor:
            f[k] = f[k] + links.H[k] @ vdot[body.v] + cross_force(t[k], links.H[k] @ v[body.v])
            tau_joint[k] = tau_joint[k] + links.H[k].T @ a[k]
        tau_joint[k] = tau_joint[k] + body.reflected_inertia @ vdot[body.v]
    return f, tau_joint


def _inward(links: Links, f: list[Array], tau_joint: list[Array]) -> Array:
    """Return the generalized forces, (nv,): equations (7) and (8)."""
    tau: list[Array] = [np.zeros(0)] * len(f)
    f = list(f)
    for body in inward(links.robot):
        k = body.index
        tau[k] = links.h[k].T @ f[k] + tau_joint[k]
        if body.parent >= 0:
            f[body.parent] = f[body.parent] + links.X[k].T @ f[k]
    return scatter_add(links.robot, tau)


INERTIAL_PARAMETERS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Of a link: mass [kg], first moment [kg m], and inertia about the link origin [kg m^2], link axes."""
_TENSOR_ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))


@any_element
def inertial_parameters(robot: Robot) -> Array:
    """Return the `INERTIAL_PARAMETERS` of all links, (10 n_links,), in the order of `robot.links`."""
    parameters = []
    for link in robot.links:
        inertia = link.inertia
        first_moment = inertia.mass * np.asarray(inertia.center)
        parameters.append([inertia.mass, *first_moment, *(inertia.about_origin[ij] for ij in _TENSOR_ENTRIES)])
    return np.array(parameters, float).ravel()


@any_element
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
