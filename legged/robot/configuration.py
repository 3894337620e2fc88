"""Vectors over q and v: their check as arguments, their assembly from joints, and configurations as a manifold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from legged.arguments import array, unit_norm_error
from legged.checked import checked
from legged.compiler.ir import require_unit_norm
from legged.elements import Element, to_float
from legged.errors import DefinitionError
from legged.robot.body import Body
from legged.robot.stages.motion import random_middle_angle
from legged.spatial import Array

if TYPE_CHECKING:
    from legged.robot.robot import Robot


_CONFIGURATIONS = ("q", "start", "end")


def read(robot: Robot, **arrays: Any) -> tuple[Array, ...]:
    """Return the arguments as arrays of the right length, or raise ShapeError or NotFiniteError naming the argument.

    `q`, `start` and `end` are (nq,), `joint_accelerations` and `joint_torques` are (nj,), every other argument is
    (nv,). Of an array of traced scalars (dtype object) only the shape is checked; a kernel checks the values,
    quaternions of `q` included.
    """
    return tuple(_read_one(robot, name, value) for name, value in arrays.items())


def _read_one(robot: Robot, name: str, value: Any) -> Array:
    size, meaning = robot.nv, "one entry per degree of freedom"
    if name in _CONFIGURATIONS:
        size, meaning = robot.nq, "one entry per configuration coordinate"
    elif name.startswith("joint_"):
        size, meaning = robot.nj, "one entry per joint degree of freedom, base not counted"
    vector = array(name, value, (size,), meaning)
    for quaternion, entries in _quaternions(robot, name) if name in _CONFIGURATIONS else ():
        parts = vector[entries].tolist()
        if vector.dtype == object and not isinstance(parts[0], Element):
            require_unit_norm(quaternion, parts)
            continue
        numbers = parts if vector.dtype == float else list(map(to_float, parts))
        if (error := unit_norm_error(quaternion, numbers)) is not None:
            raise error
    return vector


def refuse_ball_quaternions(robot: Robot) -> None:
    """Raise DefinitionError for a robot with quaternion ball joints, which have four coordinates for three velocities.

    Args:
        robot: The robot.
    """
    if robot.nq - robot.base.nq != robot.nj:
        raise DefinitionError(
            f"robot {robot.name!r} has quaternion ball joints; gaits and controllers need one coordinate per degree "
            f"of freedom, so define these joints with an Euler sequence"
        )


def _quaternions(robot: Robot, name: str) -> list[tuple[str, slice]]:
    """Return each quaternion of a configuration with a name: a description for messages, and its entries."""
    names = ["the base"] * len(robot.base.quaternion_blocks)
    names += [body.name for body in robot.bodies if body.has_quaternion]
    places = zip(names, quaternion_blocks(robot), strict=True)
    return [(f"{name}[{at.start}:{at.stop}], the quaternion of {part}", at) for part, (at, _) in places]


def scatter(size: int, parts: Iterable[tuple[slice, Array]]) -> Array:
    """Return a vector, (size,), with the given parts at the given slices and zeros elsewhere.

    Args:
        size: Its length. parts: (slice, values (n,) [any unit]) for floats or traced scalars.
    """
    entries: list[Any] = [0.0] * size
    for where, part in parts:
        entries[where] = list(part)
    return as_vector(entries)


def scatter_add(robot: Robot, parts: Sequence[Array]) -> Array:
    """Return a vector, (nv,), with the sum of the bodies' parts; bodies of coupled joints share entries.

    Args:
        robot: The robot. parts: For each body a part (nv of its joint,), [any unit], joint axes.
    """
    entries: list[Any] = [0.0] * robot.nv
    for body, part in zip(robot.bodies, parts, strict=True):
        for i, share in zip(range(body.v.start, body.v.stop), part, strict=True):
            entries[i] = entries[i] + share
    return as_vector(entries)


def as_vector(entries: list[Any]) -> Array:
    """Return a list of n numbers or traced scalars as an array, (n,)."""
    plain = np.array(entries)
    return plain if plain.dtype != object else np.stack(entries)


def _masters(robot: Robot) -> list[Body]:
    """Return the bodies whose joints are not coupled to another: each entry of v beyond the base's once."""
    return [body for body in robot.bodies[1:] if not body.follows]


@checked
def configuration_rate(robot: Robot, q: Array, v: Array) -> Array:
    """Return the time derivative of q, (nq,).

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,).
    """
    q, v = read(robot, q=q, v=v)
    base = robot.base
    qd = [(slice(0, base.nq), base.rate(q[: base.nq], v[: base.nv]))]
    for body in _masters(robot):
        qd.append((body.q, body.motion.rate(q[body.q], v[body.v])))
    return scatter(robot.nq, qd)


@checked
def integrate(robot: Robot, q: Array, dq: Array) -> Array:
    """Return the configuration q (+) dq, (nq,): sums, and quaternions multiplied by that of a rotation vector.

    A floating base rotates by dq[0:3] [rad, base axes] and translates by R(q) @ dq[3:6] [m], in its initial axes.

    Args:
        robot: The robot. q: Configuration, (nq,). dq: Step in the tangent space, (nv,), [rad] and [m], frame as v.
    """
    q, dq = read(robot, q=q, dq=dq)
    base = robot.base
    moved = [(slice(0, base.nq), base.integrate(q[: base.nq], dq[: base.nv]))]
    for body in _masters(robot):
        moved.append((body.q, body.motion.integrate(q[body.q], dq[body.v])))
    return scatter(robot.nq, moved)


@checked
def difference(robot: Robot, start: Array, end: Array) -> Array:
    """Return dq, (nv,), of least size (rotations by at most pi) with integrate(robot, start, dq) = end.

    Args:
        robot: The robot.
        start: Configuration, (nq,), [rad], [m] and unit quaternions, joint axes.
        end: Configuration, (nq,), [rad], [m] and unit quaternions, joint axes.
    """
    start, end = read(robot, start=start, end=end)
    base = robot.base
    steps = [(slice(0, base.nv), base.difference(start[: base.nq], end[: base.nq]))]
    for body in _masters(robot):
        steps.append((body.v, body.motion.difference(start[body.q], end[body.q])))
    return scatter(robot.nv, steps)


def drift(robot: Robot, q: Array, v: Array, h: Any) -> tuple[Array, Array]:
    """Return (q, v) after a motion at constant velocity, (nq,) and (nv,).

    The linear velocity of a floating base is constant in the world; the result has its components in the new base axes.

    Args:
        robot: The robot. q: Configuration, (nq,). v: Velocity, (nv,). h: Duration, [s].
    """
    n = robot.base.nv
    return integrate(robot, q, h * v), np.concatenate([robot.base.coasted(v[:n], h), v[n:]])


def normalized(robot: Robot, q: Array) -> Array:
    """Return the configuration with its quaternions scaled to unit length, (nq,).

    Args:
        robot: The robot. q: Configuration, (nq,).
    """
    scaled = list(q)
    for at, _ in quaternion_blocks(robot):
        scaled[at] = list(q[at] / np.sqrt((q[at] * q[at]).sum()))
    return np.stack(scaled) if scaled else np.zeros(0)


def quaternion_blocks(robot: Robot) -> list[tuple[slice, slice]]:
    """Return the (entries of q, entries of v) of each unit quaternion and its angular velocity.

    Args:
        robot: The robot.
    """
    joints = [(body.q, body.v) for body in robot.bodies if body.has_quaternion]
    return [*robot.base.quaternion_blocks, *joints]


@checked
def random_configuration(robot: Robot, rng: np.random.Generator) -> Array:
    """Return a random configuration, (nq,): angles within pi, displacements within 1 m, unit quaternions.

    Middle Euler angles are at least 0.2 rad away from gimbal lock, constant-velocity joints from their singularity.
    """
    q, n = rng.uniform(-1.0, 1.0, robot.nq), robot.base.nq
    q[:n] = robot.base.random(q[:n], rng)
    for body in _masters(robot):
        q[body.q] = body.motion.random(q[body.q], rng)
    for joint in robot.joints:
        if (sequence := joint.definition.locking_sequence) is not None:
            q[joint.q.start + 1] = random_middle_angle(sequence, rng)
    return q
