"""Passive joint forces: friction, springs, and the rotors of motors."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from legged.compiler.ir import where
from legged.robot.body import Body
from legged.robot.physics import TRANSITION_SPEED, unchecked
from legged.robot.robot import Robot
from legged.rotations import quaternion_exp
from legged.spatial import Array, cross, is_zero, join

R = TypeVar("R", bound=Robot)


def friction_forces(body: Body, v: Array) -> Array:
    """Return the viscous and dry friction of a joint, (nv of the joint,), [N m] or [N], against its motion.

    Args:
        body: The body behind the joint. v: Velocity of the robot, (nv,).
    """
    if not body.has_friction:
        return np.zeros(body.nv)
    return np.array(
        [
            body.ratio * (c * rate + (F * np.tanh(rate / TRANSITION_SPEED) if not is_zero(F) else 0.0))
            for c, F, rate in _friction(body, v)
        ]
    )


def velocity_forces(body: Body, v: Array) -> Array:
    """Return the passive forces of a joint that depend on velocity, (nv of the joint,), [N m] or [N], joint axes.

    They are friction, and for the armature a of a floating base, whose linear velocity has base axes, [0; a omega x v].

    Args:
        body: The body behind the joint. v: Velocity of the robot, (nv,).
    """
    friction = friction_forces(body, v)
    if not body.has_turning_armature:
        return friction
    a, rates = _each(body.physics.armature, body)[0], v[body.v]
    return friction + join(np.zeros(3), a * cross(rates[:3], rates[3:]))


def without_dry_friction(robot: R) -> R:
    """Return the robot without the dry friction of its joints; its other parameters may be traced.

    Args:
        robot: The robot.
    """
    return _with_zero(robot, "friction")


def without_friction(robot: R) -> R:
    """Return the robot without the dry and viscous friction of its joints; its other parameters may be traced.

    Args:
        robot: The robot.
    """
    return _with_zero(robot, "friction", "damping")


def _with_zero(robot: R, *names: str) -> R:
    """Return the robot with zeros for some attributes of the `JointPhysics` of the joints with friction."""
    bodies = list(robot.bodies)
    for k, body in enumerate(bodies):
        if body.has_friction:
            zeros = {name: np.zeros(np.shape(getattr(body.physics, name))) for name in names}
            bodies[k] = replace(body, physics=unchecked(body.physics, **zeros))
    return replace(robot, bodies=tuple(bodies))


def friction_slopes(body: Body, v: Array) -> Array:
    """Return friction force divided by joint rate, (nv of the joint,), [N m s/rad] or [N s/m], joint axes.

    These are secants, not tangents: in an implicit step they decelerate a joint to rest but not beyond.

    Args:
        body: The body behind the joint. v: Velocity of the robot, (nv,).
    """
    if not body.has_friction:
        return np.zeros(body.nv)
    return np.array(
        [
            body.ratio**2
            * (c + (F / TRANSITION_SPEED * _relative_tanh(rate / TRANSITION_SPEED) if not is_zero(F) else 0.0))
            for c, F, rate in _friction(body, v)
        ]
    )


def _friction(body: Body, v: Array) -> list[tuple]:
    """Return (viscous coefficient, dry friction, joint rate) of each degree of freedom."""
    rates = [body.ratio * rate for rate in v[body.v]]
    return list(zip(_each(body.physics.damping, body), _each(body.physics.friction, body), rates, strict=True))


def _relative_tanh(x):
    """Return tanh(x) / x."""
    small = x * x < 1e-6
    return where(small, 1.0 - x * x / 3.0, np.tanh(x) / where(small, 1.0, x))


def spring_forces(body: Body, q: Array) -> Array:
    """Return the force that holds a joint against its springs, (nv of the joint,), [N m] or [N], joint axes.

    Args:
        body: The body behind the joint. q: Configuration of the robot, (nq,).
    """
    if not body.has_springs:
        return np.zeros(body.nv)
    stiffness = _each(body.physics.stiffness, body)
    return np.array([body.ratio * k * x for k, x in zip(stiffness, deflection(body, q), strict=True)])


def spring_energy(body: Body, q: Array):
    """Return the potential energy of a joint's springs, [J].

    Args:
        body: The body behind the joint. q: Configuration of the robot, (nq,).
    """
    if not body.has_springs:
        return 0.0
    stiffness = _each(body.physics.stiffness, body)
    return 0.5 * sum(k * (x * x) for k, x in zip(stiffness, deflection(body, q), strict=True))


def deflection(body: Body, q: Array) -> Array:
    """Return a joint's displacement from the rest position of its springs, (nv of the joint,), [rad] or [m].

    For a ball joint it is a rotation vector.

    Args:
        body: The body behind the joint. q: Configuration of the robot, (nq,).
    """
    at, rest = body.joint_position(q), np.array(_each(body.physics.rest, body))
    return body.motion.difference(quaternion_exp(rest) if body.has_quaternion else rest, at)


def rotor_forces(body: Body, v: Array, vdot: Array | None, t: Array, td: Array) -> tuple[Array, Array]:
    """Return (moment on the body (3,) [N m], body axes; force of the joint (nv of the joint,)) from its rotors' motion.

        moment = H vdot + omega x H v,      force = H^T td + I_r vdot

    Args:
        body: The body behind the joint. v: Velocity of the robot, (nv,).
        vdot: Acceleration of the robot, (nv,); None omits its terms.
        t: Twist of the body, (6,), [rad/s, m/s], body axes. td: Its rate, (6,), [rad/s^2, m/s^2], body axes.
    """
    H = body.rotor_momentum[:3]
    moment, force = cross(t[:3], H @ v[body.v]), H.T @ td[:3]
    if vdot is not None:
        moment, force = moment + H @ vdot[body.v], force + body.reflected_inertia @ vdot[body.v]
    return moment, force


def _each(value, body: Body) -> list[float]:
    return np.broadcast_to(np.asarray(value), body.nv).tolist()
