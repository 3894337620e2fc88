"""What joints do by themselves: friction, springs, and the rotors of their motors."""

from __future__ import annotations

import numpy as np

from legged.compiler.ir import where
from legged.robot.body import Body
from legged.robot.physics import CREEP
from legged.rotations import quaternion_conjugate, quaternion_exp, quaternion_log, quaternion_product
from legged.spatial import Array, cross


def friction_forces(body: Body, v: Array) -> Array:
    """Return the viscous and dry friction that a drive must overcome, (nv of the joint,), [N m] or [N]."""
    if not body.has_friction:
        return np.zeros(body.nv)
    rates = [body.ratio * rate for rate in v[body.v]]
    drags = zip(_each(body.physics.damping, body), _each(body.physics.friction, body), rates, strict=True)
    return np.array([body.ratio * (c * rate + (F * np.tanh(rate / CREEP) if F else 0.0)) for c, F, rate in drags])


def friction_slopes(body: Body, v: Array) -> Array:
    """Return friction forces over the joint's rates, (nv of the joint,), [N m s/rad] or [N s/m].

    These are secants, not tangents: with them in an implicit step a joint is slowed to rest and not beyond.
    """
    if not body.has_friction:
        return np.zeros(body.nv)
    rates = [body.ratio * rate for rate in v[body.v]]
    drags = zip(_each(body.physics.damping, body), _each(body.physics.friction, body), rates, strict=True)
    return np.array(
        [body.ratio**2 * (c + (F / CREEP * _relative_tanh(rate / CREEP) if F else 0.0)) for c, F, rate in drags]
    )


def _relative_tanh(x):
    """Return tanh(x) / x."""
    small = x * x < 1e-6
    return where(small, 1.0 - x * x / 3.0, np.tanh(x) / where(small, 1.0, x))


def spring_forces(body: Body, q: Array) -> Array:
    """Return what a drive must hold against the joint's springs, (nv of the joint,), [N m] or [N]."""
    if not body.has_springs:
        return np.zeros(body.nv)
    stiffness = _each(body.physics.stiffness, body)
    return np.array([body.ratio * k * x for k, x in zip(stiffness, deflection(body, q), strict=True)])


def spring_energy(body: Body, q: Array):
    """Return the energy in the joint's springs, [J]."""
    if not body.has_springs:
        return 0.0
    stiffness = _each(body.physics.stiffness, body)
    return 0.5 * sum(k * (x * x) for k, x in zip(stiffness, deflection(body, q), strict=True))


def deflection(body: Body, q: Array) -> Array:
    """Return how far the joint is from where its springs are relaxed: a rotation vector for a ball joint."""
    at, rest = body.joint_position(q), np.array(_each(body.physics.rest, body))
    if body.kind != "ball":
        return at - rest
    return quaternion_log(quaternion_product(quaternion_conjugate(quaternion_exp(rest)), at))


def rotor_forces(body: Body, v: Array, vdot: Array | None, t: Array, td: Array) -> tuple[Array, Array]:
    """Return (moment on the body (3,) [N m], forces of the joint (nv of the joint,)) that its rotors' motion takes.

        moment = H vdot + omega x H v,      force = H^T td + I_r vdot

    Args:
        body: The body behind the joint. v, vdot: The robot's; without vdot all its own terms are left out.
        t, td: Twist of the body and its rate, (6,).
    """
    H = body.rotor_momentum[:3]
    moment, force = cross(t[:3], H @ v[body.v]), H.T @ td[:3]
    if vdot is not None:
        moment, force = moment + H @ vdot[body.v], force + body.reflected_inertia @ vdot[body.v]
    return moment, force


def _each(value, body: Body) -> list[float]:
    return np.broadcast_to(np.asarray(value), body.nv).tolist()
