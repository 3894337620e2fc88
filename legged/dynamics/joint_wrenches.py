"""Wrenches that joints transmit, and their parts along and across the motions of the joints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.checked import checked
from legged.dynamics.arguments import Wrenches, link_wrenches, read
from legged.dynamics.modules import newton_euler, transforms, twists_and_rates
from legged.robot.body import moments_of
from legged.robot.link import PlacedLink
from legged.robot.placement import Placement
from legged.robot.robot import Robot
from legged.spatial import Array, Transform, cross, factor_symmetric, is_zero, join, solve_factored


class JointWrenches(NamedTuple):
    """The wrench on each link from its parent through its joint, and its two parts; transmitted = active + constraint.

    Each is (n_links, 6), [n; f], [N m, N], about the link's origin in link axes, in the order of `robot.links`. The row
    of the base is the wrench on it from outside the robot that is not in the argument `wrenches`: that of the mount of
    a fixed base, or that of the generalized forces on any other base.

    Attributes:
        transmitted: The whole wrench.
        active: Its part along the motions of the joint: of motors, gears, springs and friction. It consists of a moment
            about the axis of each revolute or screw stage and a force along that of each prismatic one.
        constraint: The rest, the wrench of the bearings. It does no work in any motion of the joint.
    """

    transmitted: Array
    active: Array
    constraint: Array


@checked
def joint_wrenches(robot: Robot, q: Array, v: Array, vdot: Array, wrenches: Wrenches = None) -> JointWrenches:
    """Return the wrenches that the joints transmit in a motion, and their active and constraint parts.

        f_i  = I_i a_i + v_i x I_i v_i                       (5), with external wrenches f_i^x
        f_i^J = f_i - f_i^x + sum of f_j^J                   (6), (7), over the children j of link i

    Fixed joints are joints here: their rows are the wrenches of welds and force sensors. `inverse_dynamics` is
    h^T f^J, (8), plus the forces of friction, springs, armature and rotors, which act between the two links along the
    motion of the joint and are not part of f^J. A gyroscopic rotor is carried by the parent link and loads it.

    Args:
        robot: The robot.
        q: Configuration, (nq,). v: Velocity, (nv,). vdot: Acceleration, (nv,); see `docs/reference/conventions.md`.
        wrenches: External wrenches on links, by name or (n_links, 6), [n; f] about each link's origin, link axes.

    Raises:
        ShapeError, NotFiniteError, UnknownNameError: For arguments that do not fit the robot.

    Source: Featherstone, Orin 2000, eqs. (5) to (7).
    """
    q, v, vdot = read(robot, q=q, v=v, vdot=vdot)
    X = transforms(robot, q)
    t, td = twists_and_rates(robot, q, v, vdot)
    pairs = _link_pairs(robot)
    w = [_own_wrench(link, t[link.body], td[link.body]) for link in robot.links]
    for link, external in link_wrenches(robot, wrenches):
        w[link.index] = w[link.index] - external
    for parent, child in reversed(pairs):
        path = _path(robot, parent, child)
        inward = w[child.index]
        for k in path:
            if robot.bodies[k].has_gyroscopic_rotor:
                H, rates = robot.bodies[k].rotor_momentum[:3], robot.bodies[k].v
                inward = inward + join(H @ vdot[rates] + cross(t[k][:3], H @ v[rates]), np.zeros(3))
            inward = X[k].T @ inward
        w[parent.index] = w[parent.index] + inward
    transmitted = [in_link_axes(link, w[link.index]) for link in robot.links]
    active = [np.zeros(6)] * len(robot.links)
    base = robot.links[0]
    active[0] = _along_motions(_at_link(base, robot.base.motion_matrix(q)), transmitted[0])
    for parent, child in pairs:
        motions = _motions(robot, X, _path(robot, parent, child))
        active[child.index] = _along_motions(_at_link(child, motions), transmitted[child.index])
    constraint = [whole - part for whole, part in zip(transmitted, active, strict=True)]
    return JointWrenches(np.array(transmitted), np.array(active), np.array(constraint))


def _link_pairs(robot: Robot) -> list[tuple[PlacedLink, PlacedLink]]:
    """Return (parent link, child link) of every joint, fixed ones included, parents before children."""
    links = {link.name: link for link in robot.links}
    children: dict[str, list[str]] = {name: [] for name in links}
    for c in robot.connections:
        children[c.parent].append(c.child)
    pairs, names = [], [robot.links[0].name]
    for name in names:  # grows while it is read
        pairs += [(links[name], links[child]) for child in children[name]]
        names += children[name]
    return pairs


def _path(robot: Robot, parent: PlacedLink, child: PlacedLink) -> list[int]:
    """Return the indices of the bodies behind the stages of a joint, the outermost first; none for a fixed joint."""
    path, k = [], child.body
    while k != parent.body:
        path.append(k)
        k = robot.bodies[k].parent
    return path


def _own_wrench(link: PlacedLink, t: Array, td: Array) -> Array:
    """Return f_i of equation (5), (6,), [N m, N], about the origin of the link's body, body axes."""
    moments = moments_of(link.inertia, Placement(link.rotation, link.position))
    if is_zero(moments.mass) and not moments.J.any():
        return np.zeros(6)
    return newton_euler(moments, t, td)


def _motions(robot: Robot, X: list[Transform], path: list[int]) -> Array:
    """Return the motion subspace of a joint, (6, degrees of freedom), in the axes of the outermost body of its path."""
    columns: dict[int, Array] = {}  # by entry of v, which several stages may share
    for k in reversed(path):
        body = robot.bodies[k]
        columns = {i: X[k] @ column for i, column in columns.items()}
        for i, own in zip(range(body.v.start, body.v.stop), body.P.T, strict=True):
            columns[i] = columns[i] + own if i in columns else own
    return np.array(list(columns.values())).reshape(-1, 6).T


def _at_link(link: PlacedLink, motions: Array) -> Array:
    """Return motions of a body, (6, n), about the origin of a link in link axes."""
    R, r = link.rotation, link.position
    return np.array([join(R.T @ m[:3], R.T @ (m[3:] + cross(m[:3], r))) for m in motions.T]).reshape(-1, 6).T


def in_link_axes(link: PlacedLink, w: Array) -> Array:
    """Return a wrench on a link, (6,), [N m, N], about its origin in link axes.

    Args:
        link: The link. w: The wrench, (6,), [N m, N], about the origin of the link's body, body axes.
    """
    R, r = link.rotation, link.position
    return join(R.T @ (w[:3] - cross(r, w[3:])), R.T @ w[3:])


def _along_motions(S: Array, w: Array) -> Array:
    """Return A (S^T A)^-1 S^T w, (6,), the part of a wrench that acts along the motions S, (6, n), of a joint.

    The columns of A are moments about the axes of rotations and forces along those of translations. S^T A is symmetric:
    the axes of the rotations of a joint pass through the origin of its link.
    """
    if S.shape[1] in (0, 6):
        return w if S.shape[1] else np.zeros(6)
    A = S.copy()
    for column in A.T:
        if not all(is_zero(x) for x in column[:3]):
            column[3:] = 0.0
    return A @ solve_factored(factor_symmetric(S.T @ A), S.T @ w)
