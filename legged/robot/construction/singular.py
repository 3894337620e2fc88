"""The check that the inertia of every motion of a robot is positive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.configuration import random_configuration
from legged.spatial import Array

if TYPE_CHECKING:
    from legged.robot.robot import Robot

SINGULAR = 1e-12
"""Smallest articulated inertia of a motion, relative to the rigid inertia of everything that the joint carries.

Rounding gives values near 1e-16 where the exact inertia is zero. The smallest inertia of a real machine, a gear of
1e-8 kg m^2 whose shaft carries 10 kg at 1 m, gives 1e-9.
"""
SUSPECT = 1e-9
"""Below this value more configurations are checked: rounding errors grow if the inertia at a joint is small."""


def refuse_singular(robot: Robot) -> None:
    """Raise DefinitionError if the inertia of some motion of the robot is zero at a generic configuration.

    The inertia of a motion of joint k is the articulated inertia I^_k = P_k^T M^_k P_k, equation (A.6) link by link. It
    is evaluated at a random configuration, where it vanishes only if it vanishes at every configuration, except by
    coincidence. If it is nearly zero, the median of three configurations decides. With coupled joints, whose motions
    are not independent, the inertia matrix of the robot is checked instead.

    This finds thin rods that rotate about their axes, aligned axes with massless links between them, and free massless
    bases. Singular configurations, such as gimbal lock, are accepted.
    """
    random = [random_configuration(robot, np.random.default_rng(seed)) for seed in range(3)]
    if robot.coupled_joints:
        smallest, column = sorted((_smallest_of_matrix(robot, q) for q in random), key=lambda pair: pair[0])[1]
        if smallest <= SINGULAR:
            moved = (body for body in robot.bodies if body.v.start <= column < body.v.stop and not body.follows)
            raise DefinitionError(_message(robot, next(moved), smallest))
        return
    smallest = _smallest_inertias(robot, random[0])
    if smallest.min() > SUSPECT:
        return
    smallest = np.median([smallest, *(_smallest_inertias(robot, q) for q in random[1:])], axis=0)
    for body in reversed(robot.bodies):  # the outermost singular joint makes the values of those inward of it invalid
        if smallest[body.index] <= SINGULAR:
            raise DefinitionError(_message(robot, body, smallest[body.index]))


def singular_at(robot: Robot, q: Array) -> tuple[float, str]:
    """Return (smallest relative inertia of a motion at a configuration, its words if it is below `SUSPECT`, or "").

    Args:
        robot: The robot. q: Configuration, (nq,), mixed units.
    """
    if robot.coupled_joints:
        smallest, column = _smallest_of_matrix(robot, q)
        body = next(body for body in robot.bodies if body.v.start <= column < body.v.stop and not body.follows)
    else:
        inertias = _smallest_inertias(robot, q)
        below = [body for body in robot.bodies if inertias[body.index] < SUSPECT]
        body = below[-1] if below else robot.bodies[0]  # the outermost, as in `refuse_singular`
        smallest = float(inertias[body.index])
    if not smallest < SUSPECT or not body.nv:
        return smallest, ""
    if body.is_base:
        return (
            smallest,
            f"the base {body.name!r} has a motion with {max(smallest, 0.0):.1g} of the inertia of the robot",
        )
    joint = next(j for j in robot.joints if j.v.start <= body.v.start < j.v.stop)
    return smallest, (
        f"joint {joint.name!r} moves {max(smallest, 0.0):.1g} of the inertia of what it carries, about an axis through "
        f"mass without rotational inertia; give link {joint.child!r} rotational inertia (see `legged info`)"
    )


def _motion_matrix(robot: Robot, body: Body, q: Array) -> Array:
    return body.motion_matrix(robot.base, q)


def _smallest_inertias(robot: Robot, q: Array) -> Array:
    """Return the smallest relative inertia at the joint of each body at a configuration, (n,).

    It is inf without a joint, and where a singular joint outward leaves no finite number.
    """
    M_hat = [body.regrouped.M for body in robot.bodies]
    M_tilde = [body.M for body in robot.bodies]
    smallest = np.full(len(robot.bodies), np.inf)
    with np.errstate(all="ignore"):
        for body in reversed(robot.bodies):
            k, parent, P = body.index, body.parent, _motion_matrix(robot, body, q)
            Psi_hat = M_hat[k] @ P + body.rotor_momentum  # (A.7)
            I_hat = P.T @ Psi_hat + body.rotor_inertia  # (A.6)
            if body.nv and np.isfinite(M_hat[k]).all():
                smallest[k] = _smallest_inertia(P, I_hat, M_tilde[k])
            if parent >= 0:
                X = body.transform(q)
                M_hat[parent] = M_hat[parent] + X.transform_inertia(_transmitted(M_hat[k], Psi_hat, I_hat))
                M_tilde[parent] = M_tilde[parent] + X.transform_inertia(M_tilde[k])
    return smallest


def _transmitted(M_hat: Array, Psi_hat: Array, I_hat: Array) -> Array:
    """Return M^ - Psi^ I^^-1 Psi^^T of equation (A.9), (6, 6); NaN if I^ is singular."""
    try:
        return M_hat - Psi_hat @ np.linalg.solve(I_hat, Psi_hat.T)
    except np.linalg.LinAlgError:
        return np.full((6, 6), np.nan)


def _smallest_inertia(P: Array, I_hat: Array, M_tilde: Array) -> float:
    """Return the smallest x^T I^ x over motions x of P, relative to the rigid inertia.

    Rotations are scaled by the trace of the composite inertia about the body's origin and translations by the
    composite mass, so that radians and meters can be combined in one matrix.
    """
    _, R = np.linalg.qr(_scales(M_tilde)[:, None] * P)
    inverse = np.linalg.inv(R)
    return float(np.linalg.eigvalsh(inverse.T @ I_hat @ inverse)[0])


def _smallest_of_matrix(robot: Robot, q: Array) -> tuple[float, int]:
    """Return (smallest relative inertia of any motion at a configuration, index into v of its largest rate)."""
    M_tilde = [body.M for body in robot.bodies]
    J = np.zeros((len(robot.bodies), 6, robot.nv))  # v to each body's twist, body axes
    inertia, square = np.zeros((robot.nv, robot.nv)), np.zeros(robot.nv)
    for body in robot.bodies:
        k, H = body.index, np.zeros((6, robot.nv))
        if body.parent >= 0:
            J[k] = body.transform(q) @ J[body.parent]
        J[k][:, body.v] += _motion_matrix(robot, body, q)
        H[:, body.v] = body.rotor_momentum
        inertia += J[k].T @ (body.M @ J[k] + H) + H.T @ J[k]
        inertia[body.v, body.v] += body.reflected_inertia
    for body in reversed(robot.bodies):
        k = body.index
        if body.parent >= 0:
            M_tilde[body.parent] = M_tilde[body.parent] + body.transform(q).transform_inertia(M_tilde[k])
        square[body.v] += ((_scales(M_tilde[k])[:, None] * _motion_matrix(robot, body, q)) ** 2).sum(axis=0)
    scale = np.sqrt(square)
    values, vectors = np.linalg.eigh(inertia / np.outer(scale, scale))
    return float(values[0]), int(np.abs(vectors[:, 0]).argmax())


def _scales(M_tilde: Array) -> Array:
    """Return the scales of rotations and translations, (6,): roots of composite inertia and composite mass."""
    inertia, mass = abs(float(np.trace(M_tilde[:3, :3]))), float(M_tilde[5, 5])
    return np.sqrt(np.repeat([inertia or 1.0, mass or 1.0], 3))


def _message(robot: Robot, body: Body, smallest: float) -> str:
    if smallest < -SINGULAR:
        return (
            f"link {body.name!r} has a motion with negative inertia, which gains energy by itself: a mass or a "
            f"principal inertia of it or outward of it is negative; correct that"
        )
    if body.is_base:
        return (
            f"the base {body.name!r} can move without inertia; give it mass and inertia, or a base with "
            f"fewer degrees of freedom"
        )
    joint = next(j for j in robot.joints if j.v.start <= body.v.start < j.v.stop)
    return (
        f"joint {joint.name!r} of link {joint.child!r} can move without inertia: nothing outward of it has inertia "
        f"about or mass along its axis, or its axis is aligned with that of a joint outward of it beyond massless "
        f"links; give link {joint.child!r} inertia, or fix the joint"
    )
