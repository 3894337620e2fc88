"""The inverse operational-space inertia at the end of a serial robot in two halves, for two processors.

The robot is cut at a joint. Each half is treated by the serial algorithm, independently of the other: the inner one has
an inverse inertia at its outer end, the outer one an articulated inertia and a propagator at its inner end. A system of
six equations joins them. Both halves together need hardly more operations than the serial algorithm, unlike divide and
conquer down to single bodies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from legged.algorithms.articulated import refuse_followers
from legged.algorithms.linear_algebra import solve_rows, solve_with_exchanges
from legged.algorithms.links import Links, links_at, transform_forces
from legged.arguments import whole
from legged.dynamics.arguments import finite, read
from legged.dynamics.kinematics import on_bodies
from legged.elements import any_element
from legged.errors import DefinitionError
from legged.robot.robot import Robot
from legged.spatial import Array, factor_symmetric, mirror, skew


class InnerHalf(NamedTuple):
    """The inner half of a serial robot, up to the body before a joint.

    Attributes:
        Phi: Inverse inertia at the frame behind the joint of the cut, without the outer half and with the joint locked,
            (6, 6), in the axes of this frame.
        rotation: Rotation matrix, (3, 3), axes of this frame to world axes.
    """

    Phi: Array
    rotation: Array


class OuterHalf(NamedTuple):
    """The outer half of a serial robot, from a joint on.

    Attributes:
        inertia: What the joint transmits of the articulated inertia of its body, (6, 6), [kg m^2, kg m, kg], body axes.
        chi: Propagator from forces at the point, axes of its body, to this joint, (6, 6).
        mobility: Inverse inertia at the point while the body before the joint is held fixed, (6, 6).
        rotation: Rotation matrix, (3, 3), axes of the point's body to axes of the joint's body.
    """

    inertia: Array
    chi: Array
    mobility: Array
    rotation: Array


@any_element
def by_halves(robot: Robot, q: Array, link: str | int, position: Array, cut: int | None = None) -> Array:
    """Return J M^-1 J^T of a point of the last body of a serial robot, (6, 6), [angular; linear], world axes.

        Lambda^-1 = mobility + chi^T (1 + Phi I^a)^-1 Phi chi

    Args:
        robot: The robot, without branches. q: Configuration, (nq,).
        link: Name or index of a link of the last body. position: Position of the point, (3,), [m], link axes.
        cut: Index of the body whose joint is cut; by default in the middle.

    Raises:
        DefinitionError: For a robot with branches, joints that follow others, or a link of another body.

    Source: the abstract of Featherstone and others, Journal of Computational and Nonlinear Dynamics 9(2), paper 021012,
    2014, which combines divide and conquer with fast sequential algorithms; the equations are our derivation.
    """
    cut = middle(robot) if cut is None else whole("cut", cut, least=1, most=len(robot.bodies) - 1)
    return joined(robot, inner_half(robot, q, cut), outer_half(robot, q, cut, link, position))


@any_element
def middle(robot: Robot) -> int:
    """Return the index of the body whose joint divides a serial robot into halves of equal cost."""
    return max(1, len(robot.bodies) // 2)


@any_element
def inner_half(robot: Robot, q: Array, cut: int) -> InnerHalf:
    """Return the inner half of a robot, before a joint; `cut` is the index of the body of this joint.

    Args:
        robot: The robot. q: Configuration, (nq,). cut: Index of a body.
    """
    links, q = _serial(robot, q)
    R, _ = robot.base.pose(q)
    for body in robot.bodies[1 : cut + 1]:
        R, _ = links.X[body.index].child_pose(R, np.zeros(3))
    chi = transform_forces(links.X[cut], np.eye(6))
    _, mobility, _ = _propagated(links, range(cut - 1, -1, -1), chi)
    return InnerHalf(mobility, R)


@any_element
def outer_half(robot: Robot, q: Array, cut: int, link: str | int, position: Array) -> OuterHalf:
    """Return the outer half of a robot, from a joint on; arguments as in `by_halves` and `inner_half`.

    Args:
        robot: The robot. q: Configuration, (nq,). cut: Index of a body.
        link: Name or index of a link of the last body. position: Position of the point, (3,), [m], link axes.
    """
    links, q = _serial(robot, q)
    ((k, r),) = on_bodies(robot, [(link, np.asarray(position))])
    if k != len(robot.bodies) - 1:
        raise DefinitionError(f"the point must be on the last body of {robot.name!r}, {robot.bodies[-1].name!r}")
    R = np.eye(3)
    for body in robot.bodies[cut + 1 :]:
        R, _ = links.X[body.index].child_pose(R, np.zeros(3))
    forces = np.block([[np.eye(3), np.zeros((3, 3))], [-skew(r), np.eye(3)]]).T
    inertia, mobility, chi = _propagated(links, range(k, cut - 1, -1), forces)
    return OuterHalf(inertia, chi, mobility, R)


@any_element
def joined(robot: Robot, inner: InnerHalf, outer: OuterHalf) -> Array:
    """Return J M^-1 J^T, (6, 6), world axes, from both halves.

    Args:
        robot: The robot, for messages. inner, outer: Its halves.
    """
    loaded = mirror(solve_with_exchanges(np.eye(6) + inner.Phi @ outer.inertia, inner.Phi))
    at_point = mirror(outer.mobility + outer.chi.T @ loaded @ outer.chi)
    R = inner.rotation @ outer.rotation
    turn = np.block([[R, np.zeros((3, 3))], [np.zeros((3, 3)), R]])
    return finite(robot, "the operational-space inertia", mirror(turn @ at_point @ turn.T))


def _serial(robot: Robot, q: Array) -> tuple[Links, Array]:
    refuse_followers(robot, "the algorithm in two halves")
    (q,) = read(robot, q=q)
    if any(body.parent != body.index - 1 for body in robot.bodies):
        raise DefinitionError(f"the algorithm in two halves needs a serial robot; {robot.name!r} has branches")
    return links_at(robot, q), q


def _propagated(links: Links, bodies: range, chi: Array) -> tuple[Array, Array, Array]:
    """Return (transmitted inertia, mobility, chi) before the joint of the last of some bodies, the outermost first.

    Articulated inertias and propagators of `by_propagators` in one sweep; chi begins at the first body.
    """
    inertia = links.I[bodies[0]]
    mobility = np.zeros((6, 6))
    for k in bodies:
        body, h, H = links.robot.bodies[k], links.h[k], links.H[k]
        U = inertia @ h + H
        D = factor_symmetric(mirror(h.T @ U + H.T @ h + body.reflected_inertia))
        Psi, g = solve_rows(D, U), h.T @ chi
        mobility = mobility + mirror(g.T @ solve_rows(D, g.T).T)
        inertia, chi = mirror(inertia - U @ Psi.T), chi - Psi @ g
        if k != bodies[-1]:
            inertia = links.I[k - 1] + links.X[k].transform_inertia(inertia)
            chi = transform_forces(links.X[k], chi)
    return inertia, mobility, chi
