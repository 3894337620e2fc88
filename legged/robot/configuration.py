"""Configurations as points of a manifold: rates, steps along it, differences, random ones."""

from __future__ import annotations

import numpy as np

from legged.dynamics.arguments import read
from legged.robot.body import Body
from legged.robot.entries import scatter
from legged.robot.robot import Robot
from legged.rotations import (
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_matrix,
    quaternion_product,
    quaternion_rate,
)
from legged.spatial import Array


def _quaternion_joints(robot: Robot) -> list[tuple[slice, slice]]:
    return [(body.q, body.v) for body in robot.bodies if body.kind == "ball"]


def _masters(robot: Robot) -> list[Body]:
    """Return the bodies whose joints have entries of their own, each entry once."""
    return [body for body in robot.bodies[1:] if not body.follows]


def configuration_rate(robot: Robot, q: Array, v: Array) -> Array:
    """Return the time derivative of q, (nq,), for a velocity v, (nv,)."""
    q, v = read(robot, q=q, v=v)
    base = robot.base
    qd = [(slice(0, base.nq), base.rate(q[: base.nq], v[: base.nv]))]
    for body in _masters(robot):
        qd.append((body.q, quaternion_rate(q[body.q], v[body.v]) if body.kind == "ball" else v[body.v]))
    return scatter(robot.nq, qd)


def integrate(robot: Robot, q: Array, dq: Array) -> Array:
    """Return q moved along the manifold by dq, (nv,): plain sums, and quaternions turned by a rotation vector.

    A floating base turns by dq[0:3] [rad, base axes] and moves by R(q) @ dq[3:6] [m]: its axes at the start.
    """
    q, dq = read(robot, q=q, dq=dq)
    n, m = robot.base.nq, robot.base.nv
    moved = [(slice(0, n), q[:n] + dq[:m] if n == m else _float_base(q[:n], dq[:m]))]
    for body in _masters(robot):
        at, step = q[body.q], dq[body.v]
        moved.append((body.q, quaternion_product(at, quaternion_exp(step)) if body.kind == "ball" else at + step))
    return scatter(robot.nq, moved)


def _float_base(q: Array, dq: Array) -> Array:
    turned = quaternion_product(q[:4], quaternion_exp(dq[:3]))
    return np.concatenate([turned, q[4:7] + quaternion_matrix(q[:4]) @ dq[3:6]])


def difference(robot: Robot, start: Array, end: Array) -> Array:
    """Return dq, (nv,), with integrate(robot, start, dq) = end. Plain floats only."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    n, m = robot.base.nq, robot.base.nv
    dq = np.zeros(robot.nv)
    if n == m:
        dq[:m] = end[:n] - start[:n]
    else:
        dq[:3] = _turn_between(start[:4], end[:4])
        dq[3:6] = quaternion_matrix(start[:4]).T @ (end[4:7] - start[4:7])
    for body in _masters(robot):
        a, b = start[body.q], end[body.q]
        dq[body.v] = _turn_between(a, b) if body.kind == "ball" else b - a
    return dq


def _turn_between(a: Array, b: Array) -> Array:
    return quaternion_log(quaternion_product(quaternion_conjugate(a), b))


def random_configuration(robot: Robot, rng: np.random.Generator) -> Array:
    """Return a random q, (nq,): angles within a half turn, slides and positions within a meter, unit quaternions.

    Middle Euler angles stay 0.2 rad away from gimbal lock.
    """
    q = rng.uniform(-1.0, 1.0, robot.nq)
    for body in _masters(robot):
        if body.kind == "revolute":
            q[body.q] *= np.pi
    if robot.base.kind == "planar":
        q[0] *= np.pi
    elif robot.base.kind == "floating":
        q[:4] = _unit_quaternion(rng)
    elif robot.base.kind == "euler":
        q[:3] *= np.pi
        q[1] = _away_from_lock(robot.base.sequence, rng)  # type: ignore[attr-defined]
    for where, _ in _quaternion_joints(robot):
        q[where] = _unit_quaternion(rng)
    for joint in robot.joints:
        sequence = getattr(joint.definition, "sequence", None)
        if sequence is not None:
            q[joint.q.start + 1] = _away_from_lock(sequence, rng)
    return q


def _away_from_lock(sequence: str, rng: np.random.Generator) -> float:
    reach = np.pi / 2 - 0.2
    middle = rng.uniform(-reach, reach)
    return middle + np.pi / 2 if sequence[0] == sequence[2] else middle


def _unit_quaternion(rng: np.random.Generator) -> Array:
    p = rng.normal(size=4)
    return p / np.linalg.norm(p)
