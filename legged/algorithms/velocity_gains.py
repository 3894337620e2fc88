"""Velocity gains: how much the velocity of the center of mass changes per unit of joint action, on a given support.

    gains = legged.velocity_gains(robot, q, contacts=["a_toe"], action={"a_hip": 1.0})
    gains.linear[:, 0]        # change of the center of mass's velocity per unit of the hip's rate, (3,), world axes

The motors change the rates of the active joints by an impulsive action. All other degrees of freedom, the base and the
passive joints, follow from impulsive dynamics under the contact constraint:

    M dv = [0; motor impulses] + J^T impulses,    J dv = 0,    dv of the active joints given

A robot whose gain is zero cannot balance by that action, however strong its motors are.

Source: Featherstone 2015, RSS, "Quantitative measures of a robot's ability to balance"; 2016, IJRR, "Quantitative
measures of a robot's physical ability to balance". Reconstructed from their abstracts; for a planar robot on a point
the linear gain is G_v = X2 - X1 H12 / H11 of `controllers.PlanarBalance`. A compliant area is our reading: its moments
are finite, so they take no part in an impulse, and the support holds one point of it, its center.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from legged import arguments
from legged.algorithms.inverse_kinematics import center_of_mass_jacobian
from legged.algorithms.linear_algebra import numerical_rank
from legged.checked import checked
from legged.dynamics.arguments import read
from legged.dynamics.inertia import inertia_matrix
from legged.dynamics.kinematics import center_of_mass, point_jacobian, point_positions
from legged.errors import ArgumentError, ShapeError, SingularError
from legged.robot.base import FixedBase, PlanarBase
from legged.robot.placement import Vector
from legged.robot.robot import Robot
from legged.spatial import Array, cross, factor_symmetric, solve_factored


class VelocityGains(NamedTuple):
    """Velocity changes per unit of action, a column for each action.

    Attributes:
        linear: Change of the velocity of the center of mass, (3, k), [m/s] per unit of action, world axes.
        angular: Change of the angular velocity of the line from the support to the center of mass, (3, k), [rad/s] per
            unit of action, world axes: r x linear / r^2.
        relative: Change of the center of mass's velocity relative to the contact, (3, k): differs from `linear` where
            a round foot rolls, and the contact moves on the ground.
        velocity: Change of all velocities, (nv, k).
        impulses: Sum of the impulses of the support on the robot, (3, k), [N s] per unit of action, world axes.
    """

    linear: Array
    angular: Array
    relative: Array
    velocity: Array
    impulses: Array


@checked
def velocity_gains(
    robot: Robot,
    q: Array,
    contacts: Sequence[str] = (),
    action: Mapping[str, float] | Array | None = None,
    passive: Sequence[str] = (),
    compliant: bool = False,
    support: Vector | None = None,
    normal: Array = (0.0, 0.0, 1.0),  # type: ignore[assignment]
) -> VelocityGains:
    """Return the velocity gains of joint actions on a support. The function can be traced, and compiled for batches.

    One contact is a point; two a line, about which the robot may rotate; three or more an area, which holds the base.
    Two contacts on different legs are a line, too, if the action does not change their distance. A contact point with a
    radius rolls without slipping.

    Args:
        robot: The robot.
        q: Configuration, (nq,).
        contacts: Names of the contact points that stand; none for a robot on a fixed base.
        action: Rates of the active joints, [rad/s] or [m/s], joint axes: by joint name, zero for those without; or
            (nj,) or (nj, k), one column for each action, in the order of the joint velocities. None: each joint that is
            not passive by itself.
        passive: Names of joints without motors, for example the pivot of a robot on a fixed base.
        compliant: The support is a compliant area: only the center of the contacts is held, moments are not.
        support: Center of the support, (3,), [m], world axes, for `angular`; the center of the contacts for None, the
            origin without contacts.
        normal: Normal of the ground, a unit vector, (3,), world axes: where round feet touch.

    Raises:
        ArgumentError: For an action of a passive joint. UnknownNameError: For names that the robot lacks.
        SingularError: If the contacts cannot hold the robot, for example two that lie at the same place, and if the
            center of mass lies at the center of the support, where `angular` is undefined. Not for traced values.
    """
    (q,) = read(robot, q=q)
    U, active = _action(robot, action, passive)
    points = _points(robot, q, contacts, normal)
    J = _constraints(robot, points, compliant)
    M = inertia_matrix(robot, q)
    free = np.flatnonzero(~active)
    moved = np.flatnonzero(active)
    motion, dv_free = U[moved], np.zeros((0, U.shape[1]))
    if len(free):
        factors = factor_symmetric(M[np.ix_(free, free)])

        def by_inertia(columns: Array) -> Array:
            return np.stack([solve_factored(factors, column) for column in columns.T], axis=1)

        dv_free = -by_inertia(M[np.ix_(free, moved)] @ motion)
        if len(J):
            _refuse_dependent(J[:, free], contacts)
            response = by_inertia(J[:, free].T)
            slip = J[:, free] @ dv_free + J[:, moved] @ motion
            delassus = factor_symmetric(J[:, free] @ response)
            impulse = -np.stack([solve_factored(delassus, column) for column in slip.T], axis=1)
            dv_free = dv_free + response @ impulse
    rows: dict[Any, Array] = dict(zip(free, dv_free, strict=True)) | dict(zip(moved, motion, strict=True))
    dv = np.stack([rows[k] for k in range(robot.nv)])
    moving = robot.mass - (robot.bodies[0].moments.mass if isinstance(robot.base, FixedBase) else 0.0)
    linear = center_of_mass_jacobian(robot, q) @ dv * (robot.mass / moving)
    relative = linear - (_contact_velocity(points) @ dv if points else 0.0)
    r = center_of_mass(robot, q) - (_center(points) if support is None else np.asarray(support))
    if r.dtype != object and not r.any():
        raise SingularError("the center of mass lies at the center of the support: the angular gain is undefined")
    angular = np.stack([cross(r, column) / (r @ r) for column in relative.T], axis=1)
    return VelocityGains(linear, angular, relative, dv, moving * linear)


def _refuse_dependent(J: Array, contacts: Sequence[str]) -> None:
    """Raise SingularError if rows of the constraints on the free velocities depend on each other."""
    if J.dtype != object and numerical_rank(np.linalg.svd(J, compute_uv=False)) < len(J):
        raise SingularError(
            f"the contacts {', '.join(map(repr, contacts))} have dependent constraints, so that their impulses are "
            f"undetermined; leave out a contact, for example one at the place of another"
        )


class _Point(NamedTuple):
    """A standing contact point.

    Attributes:
        position: Where it touches, (3,), [m], world axes. J: Jacobian of the material point there, (3, nv), world axes.
        moving: Jacobian of the place of contact, (3, nv): that of the center of a round foot, zero for a point.
    """

    position: Array
    J: Array
    moving: Array


def _action(robot: Robot, action: Mapping[str, float] | Array | None, passive: Sequence[str]) -> tuple[Array, Array]:
    """Return (rates of all velocities for each action, (nv, k); which of them are active, (nv,))."""
    joints = {joint.name: joint.v for joint in robot.joints}
    active = np.ones(robot.nv, bool)
    active[: robot.base.nv] = False
    for name in passive:
        active[joints[arguments.known_name("joint", name, joints)]] = False
    U: Array = np.zeros((robot.nv, 0))
    if action is None:
        U = np.eye(robot.nv)[:, active]
    elif isinstance(action, Mapping):
        U = np.zeros((robot.nv, 1))
        for name, rate in action.items():
            U[joints[arguments.known_name("joint", name, joints)], 0] = arguments.number(f"the rate of {name!r}", rate)
    else:
        given = np.asarray(action)
        if given.ndim not in (1, 2) or len(given) != robot.nv - robot.base.nv:
            raise ShapeError(f"action must be ({robot.nv - robot.base.nv},) or that by k, got shape {given.shape}")
        given = given.reshape(len(given), -1)
        U = np.concatenate([np.zeros((robot.base.nv, given.shape[1])), given])
    if U.dtype != object and np.any(U[~active]):
        raise ArgumentError("an action moves a passive joint; leave it out of `action` or of `passive`")
    return U, active


def _points(robot: Robot, q: Array, names: Sequence[str], normal: Array) -> list[_Point]:
    contacts = {contact.name: contact for contact in robot.contacts}
    points = []
    for name in names:
        contact = contacts[arguments.known_name("contact point", name, contacts)]
        J = point_jacobian(robot, q, contact.link, contact.position)
        position = point_positions(robot, q, [(contact.link, contact.position)])[0]
        lever = -contact.radius * np.asarray(normal)
        touching = J[3:] + np.stack([cross(column, lever) for column in J[:3].T], axis=1)
        points.append(_Point(position + lever, touching, J[3:] if contact.radius else 0.0 * J[3:]))
    return points


def _constraints(robot: Robot, points: list[_Point], compliant: bool) -> Array:
    """Return the independent rows of the contact constraint, (c, nv)."""
    if not points:
        return np.zeros((0, robot.nv))
    if compliant:
        points = [_Point(_center(points), sum((p.J for p in points[1:]), points[0].J) / len(points), points[0].moving)]
    first, others = points[0], points[1:]
    if isinstance(robot.base, PlanarBase):
        rows = [first.J[[0, 2]]]
        if others:
            along = others[0].position - first.position
            rows.append((np.stack([-along[2], 0.0 * along[0], along[0]]) @ others[0].J)[None])
        return np.concatenate(rows)
    rows = [first.J]
    if others:
        along = others[0].position - first.position
        # Two directions normal to the line; the first is also normal to the world's axis least aligned with it.
        least = np.eye(3)[int(np.argmin(np.abs(along)))] if along.dtype != object else np.array([0.0, 0.0, 1.0])
        across = cross(along, least)
        rows.append(np.stack([across @ others[0].J, cross(along, across) @ others[0].J]))
        if len(others) > 1:
            normal = cross(along, others[1].position - first.position)
            rows.append((normal @ others[1].J)[None])
    return np.concatenate(rows)


def _center(points: list[_Point]) -> Array:
    return sum((p.position for p in points), np.zeros(3)) / max(len(points), 1)


def _contact_velocity(points: list[_Point]) -> Array:
    """Return the mean Jacobian of the places of contact, (3, nv)."""
    return sum((p.moving for p in points[1:]), points[0].moving) / len(points)
