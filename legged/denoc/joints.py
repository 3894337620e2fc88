"""Joint physics in the dense theory of DeNOC matrices: rotors and armature, friction and springs.

`legged.denoc.equations` adds these terms to the equations of motion, of which it forms every matrix; they are the
oracle of the recursive algorithms, which contain the same physics in another form.

A rotor on the parent link, with its axis e along the joint's, spins at n qd relative to its parent. Its kinetic energy
in addition to that in the parent's own inertia is I n^2 qd^2 / 2 + I n qd (e . omega_parent); the second term is the
gyroscopic part.
"""

from __future__ import annotations

import numpy as np

from legged.denoc.kinematics import Kinematics, Rates, rotor_spin, zeros
from legged.robot.body import Body
from legged.robot.physics import TRANSITION_SPEED
from legged.robot.robot import Robot
from legged.rotations import quaternion_conjugate, quaternion_exp, quaternion_log, quaternion_product
from legged.spatial import Array, skew


def rotor_momentum(robot: Robot, at: Kinematics) -> Array:
    """Return H, (6 n, nv), [kg m^2], world axes: angular momentum of spinning rotors per joint rate, on their parents.

    The kinetic energy of n bodies is v^T (N^T M N + N^T H + H^T N + I_r) v / 2, with the DeNOC matrix N, the mass
    matrix M of the bodies and I_r from `reflected_inertia`.

    Args:
        robot: The robot. at: Its kinematics.
    """
    H = zeros((6 * len(robot.bodies), robot.nv), at.origin)
    for body in robot.bodies:
        H[6 * body.parent : 6 * body.parent + 3, body.v] += rotor_spin(body, at)
    return H


def rotor_momentum_rate(robot: Robot, at: Kinematics, moving: Rates) -> Array:
    """Return the time derivative of H, (6 n, nv), world axes: the axes of rotors rotate with their parents.

    Args:
        robot: The robot. at: Its kinematics. moving: Their rates.
    """
    H_dot = zeros((6 * len(robot.bodies), robot.nv), moving.twist)
    for body in robot.bodies:
        rate = np.cross(moving.twist[body.parent, :3], rotor_spin(body, at).T).T
        H_dot[6 * body.parent : 6 * body.parent + 3, body.v] += rate
    return H_dot


def reflected_inertia(robot: Robot) -> Array:
    """Return I_r, (nv, nv), [kg m^2] or [kg]: inertia of armature and rotors in the joint rates alone."""
    inertia = zeros((robot.nv, robot.nv), *(_reflected(body) for body in robot.bodies))
    for body in robot.bodies:
        inertia[body.v, body.v] += _reflected(body)
    return inertia


def joint_forces(robot: Robot, q: Array, v: Array) -> Array:
    """Return the forces that overcome friction and springs of the joints, (nv,), [N m] or [N], joint axes.

    A body whose joint is coupled moves at `ratio` times the rate of v, and its force acts on v by the same ratio.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    forces = zeros(robot.nv, q, v)
    for body in robot.bodies:
        physics, rates = body.physics, body.ratio * v[body.v]
        resistance = physics.damping * rates + physics.friction * np.tanh(rates / TRANSITION_SPEED)
        if np.any(physics.stiffness):
            resistance = resistance + physics.stiffness * _deflection(body, q)
        forces[body.v] += body.ratio * resistance
    return forces


def armature_rotation(robot: Robot, v: Array) -> Array:
    """Return the matrix C of the base's armature, (nv, nv), with C v = [0; a omega x v] in the rows of the base.

    It is skew-symmetric: the linear velocity of a floating base has axes that rotate with the base.

    Args:
        robot: The robot. v: Velocity, (nv,).
    """
    C = zeros((robot.nv, robot.nv), v)
    if robot.bodies[0].has_turning_armature:
        C[3:6, 3:6] = np.asarray(robot.bodies[0].physics.armature) * skew(v[:3])
    return C


def _deflection(body: Body, q: Array) -> Array:
    """Return the position of a joint from the rest of its spring, (nv of the joint,); a rotation vector for a ball."""
    at, rest = body.joint_position(q), np.broadcast_to(np.asarray(body.physics.rest), body.nv)
    if not body.has_quaternion:
        return at - rest
    return quaternion_log(quaternion_product(quaternion_conjugate(quaternion_exp(rest)), at))


def _reflected(body: Body) -> Array:
    """Return the inertia of armature and rotor of a joint in its rates, (nv of the joint, nv of the joint)."""
    rotor = body.physics.rotor
    spinning = 0.0 if rotor is None else rotor.gear**2 * rotor.inertia
    return body.ratio**2 * np.diag(np.broadcast_to(np.asarray(body.physics.armature), body.nv) + spinning)
