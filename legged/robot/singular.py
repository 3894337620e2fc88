"""Refusing robots that can move without meeting any inertia, whatever their configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.spatial import Array

if TYPE_CHECKING:
    from legged.robot.robot import Robot

SINGULAR = 1e-12
"""Least articulated inertia of a motion, in parts of the rigid inertia of all that the joint carries.

Rounding leaves some 1e-16 of it where algebra says zero; the smallest inertia in a real machine, that of a gear of
1e-8 kg m^2 whose shaft holds 10 kg at a meter, is 1e-9 of it.
"""
SUSPECT = 1e-9
"""Below this a second look is worth its time: where joints outward happen to meet little inertia, rounding grows."""


def refuse_singular(robot: Robot) -> None:
    """Raise DefinitionError if some motion of the robot meets no inertia at a generic configuration.

    The motion of joint k meets the articulated inertia I^_k = P_k^T M^_k P_k, equation (A.6) link by link. A random
    configuration decides: what is singular everywhere is so there, and what is not, is not, but for an accident. So
    a suspect is looked at in three configurations and the middle one counts.

    Joints that follow others are no motions of their own: a robot that has some is judged by its whole inertia matrix.

    Thin rods that turn about themselves, aligned axes with massless links between, and massless bases that nothing
    holds are found so. What is singular only somewhere (gimbal lock) is not refused here.
    """
    if robot.followers:
        _refuse_singular_whole(robot)
        return
    least = _least_inertias(robot, seed=0)
    if least.min() > SUSPECT:
        return
    least = np.median([least, _least_inertias(robot, seed=1), _least_inertias(robot, seed=2)], axis=0)
    for body in reversed(robot.bodies):  # the outermost is the culprit: it spoils the numbers of those inward of it
        if least[body.index] <= SINGULAR:
            raise DefinitionError(_message(robot, body, least[body.index]))


def _least_inertias(robot: Robot, seed: int) -> Array:
    """Return the least inertia that each body's joint meets at a random configuration, (n,), as parts of the rigid.

    It is inf where there is no joint, or where a singular joint outward left no number.
    """
    from legged.dynamics.forward import articulate
    from legged.dynamics.inverse import composite_masses
    from legged.dynamics.sweeps import transforms
    from legged.robot.configuration import random_configuration

    q = random_configuration(robot, np.random.default_rng(seed))
    X = transforms(robot, q)
    with np.errstate(all="ignore"):
        _, M_hat = articulate(robot, q, X)
    M_tilde = composite_masses(robot, X, [body.M for body in robot.bodies])
    least = np.full(len(robot.bodies), np.inf)
    for body in robot.bodies:
        k = body.index
        P = robot.base.motion_matrix(q) if body.kind == "base" else body.P
        if body.nv and np.isfinite(M_hat[k]).all():
            least[k] = _least_inertia(body, P, M_hat[k], M_tilde[k])
    return least


def _refuse_singular_whole(robot: Robot) -> None:
    """Raise DefinitionError if the inertia matrix of a robot with coupled joints is singular."""
    found = sorted((_least_of_all(robot, seed) for seed in range(3)), key=lambda pair: pair[0])
    least, column = found[1]
    if least <= SINGULAR:
        moved = (body for body in robot.bodies if body.v.start <= column < body.v.stop and not body.follows)
        raise DefinitionError(_message(robot, next(moved), least))


def _least_of_all(robot: Robot, seed: int) -> tuple[float, int]:
    """Return (the least inertia of any motion at a random configuration, the column of v that moves most)."""
    from legged.dynamics.inertia import inertia_matrix
    from legged.dynamics.inverse import composite_masses
    from legged.dynamics.sweeps import transforms
    from legged.robot.configuration import random_configuration

    q = random_configuration(robot, np.random.default_rng(seed))
    M_tilde = composite_masses(robot, transforms(robot, q), [body.M for body in robot.bodies])
    square = np.zeros(robot.nv)
    for body in robot.bodies:
        P = robot.base.motion_matrix(q) if body.kind == "base" else body.P
        square[body.v] += ((_sizes(M_tilde[body.index])[:, None] * P) ** 2).sum(axis=0)
    size = np.sqrt(square)
    values, vectors = np.linalg.eigh(inertia_matrix(robot, q) / np.outer(size, size))
    return float(values[0]), int(np.abs(vectors[:, 0]).argmax())


def _sizes(M_tilde: Array) -> Array:
    """Return what rotations and translations are measured by, (6,): roots of composite inertia and composite mass."""
    turning, sliding = abs(float(np.trace(M_tilde[:3, :3]))), float(M_tilde[5, 5])
    return np.sqrt(np.repeat([turning or 1.0, sliding or 1.0], 3))


def _least_inertia(body: Body, P: Array, M_hat: Array, M_tilde: Array) -> float:
    """Return the least x^T I^ x over motions x of P, in parts of the rigid inertia.

    Rotations are measured by the trace of the composite inertia about the body's origin and translations by the
    composite mass, so that radians and meters can stand in one matrix.
    """
    Psi_hat = M_hat @ P + body.rotor_momentum
    I_hat = P.T @ Psi_hat + body.rotor_inertia
    _, R = np.linalg.qr(_sizes(M_tilde)[:, None] * P)
    inverse = np.linalg.inv(R)
    return float(np.linalg.eigvalsh(inverse.T @ I_hat @ inverse)[0])


def _message(robot: Robot, body: Body, least: float) -> str:
    if least < -SINGULAR:
        return (
            f"link {body.name!r} can move so that it meets a negative inertia and gains energy by itself: a mass or a "
            f"principal inertia of it or outward of it is negative; correct that"
        )
    if body.kind == "base":
        return (
            f"the base {body.name!r} can move without meeting any inertia; give it mass and inertia, or a base with "
            f"fewer degrees of freedom"
        )
    joint = next(j for j in robot.joints if j.v.start <= body.v.start < j.v.stop)
    return (
        f"joint {joint.name!r} of link {joint.child!r} can move without meeting any inertia: nothing outward of it has "
        f"any about or along that axis, or it lines up with a joint outward of it over massless links; give link "
        f"{joint.child!r} inertia, or fix the joint"
    )
