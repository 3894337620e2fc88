"""Slopes of what joints do by themselves: of friction over rates, of springs over positions."""

from __future__ import annotations

import numpy as np

from legged.compiler.ir import where
from legged.dynamics.passive import deflection
from legged.robot.body import Body
from legged.robot.physics import TRANSITION_SPEED
from legged.spatial import Array, skew


def friction_tangents(body: Body, v: Array) -> Array:
    """Return the derivatives of `friction_forces` by the joint's rates, (nv of the joint,), [N m s/rad] or [N s/m]."""
    if not body.has_friction:
        return np.zeros(body.nv)
    damping, friction = (np.broadcast_to(x, body.nv) for x in (body.physics.damping, body.physics.friction))
    slopes = []
    for c, F, rate in zip(damping.tolist(), friction.tolist(), v[body.v], strict=True):
        drag = np.tanh(body.ratio * rate / TRANSITION_SPEED) if F else 0.0
        slopes.append(body.ratio**2 * (c + F / TRANSITION_SPEED * (1.0 - drag * drag)))
    return np.array(slopes)


def spring_tangent(body: Body, q: Array) -> Array:
    """Return the derivative of `spring_forces` by a displacement of the joint, (nv, nv) of it, [N m/rad] or [N/m]."""
    stiffness = np.broadcast_to(body.physics.stiffness, body.nv)
    if body.kind != "ball":
        return np.diag(body.ratio**2 * stiffness)
    return stiffness[0] * turning_rates(deflection(body, q))


def turning_rates(phi: Array) -> Array:
    """Return the matrix from angular velocities in turned axes to rates of the rotation vector phi, (3, 3).

        1 + phi~ / 2 + c phi~ phi~,      c = (1 - a cot(a)) / (4 a^2),   a = |phi| / 2

    Below |phi| = 0.01 the series of c, whose next term is 1e-13 of it.
    """
    square = phi @ phi
    small = square < 1e-4
    safe = where(small, 1.0, square)
    a = 0.5 * np.sqrt(safe)
    whole = (1.0 - a * np.cos(a) / np.sin(a)) / safe
    c = where(small, 1.0 / 12.0 + square * (1.0 / 720.0 + square / 30240.0), whole)
    return np.eye(3) + 0.5 * skew(phi) + c * (skew(phi) @ skew(phi))
