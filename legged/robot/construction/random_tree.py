"""Random robots of every topology and joint type for tests, reproducible by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from legged.arguments import MOST_LINKS, known_name, number, whole
from legged.checked import checked
from legged.errors import ArgumentError
from legged.robot.base import Base, EulerBase, FixedBase, FloatingBase, PlanarBase
from legged.robot.construction.builder import RobotBuilder
from legged.robot.construction.graph import GRAVITY
from legged.robot.inertia import Inertia
from legged.robot.joint import (
    ConstantVelocity,
    Cylindrical,
    Fixed,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from legged.robot.link import Link
from legged.robot.physics import JointPhysics, Rotor
from legged.robot.robot import Robot
from legged.rotations import quaternion_matrix
from legged.spatial import Array

JOINTS = ("revolute", "prismatic", "universal", "spherical", "ball", "planar", "fixed")
ALL_JOINTS = (*JOINTS, "free", "constantvelocity", "screw", "cylindrical")
BASES = ("fixed", "planar", "floating", "euler")
_SEQUENCES = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")


@checked
def random_tree(
    seed: int,
    links: int | None = None,
    *,
    joints: Sequence[str] = JOINTS,
    bases: Sequence[str] = BASES,
    branching: float | None = None,
    axes: str = "any",
    gravity: Sequence[float] = GRAVITY,
    physics: bool = False,
    coupled: bool = False,
    shuffled: bool = False,
) -> Robot:
    """Return a random robot, identical for the same seed and arguments.

    Args:
        seed: Seed of NumPy's random generator.
        links: Number of links without the base; random from 1 to 40 by default.
        joints: Joint types to draw from: "revolute", "prismatic", "universal", "spherical" (three Euler angles), "ball"
            (quaternion), "planar", "fixed", and those of `ALL_JOINTS` that the default omits: "free",
            "constantvelocity", "screw" and "cylindrical".
        bases: Base types to draw from: "fixed", "planar", "floating", "euler".
        branching: Probability that a link's parent is any earlier link instead of the previous one, from 0 (a chain) to
            1; random by default.
        axes: "any" direction and frame rotation, "parallel" (all about y, offsets along x and z), or "perpendicular"
            (each axis perpendicular to its parent's, coordinate axes).
        gravity: Acceleration of free fall, (3,), [m/s^2], world axes.
        physics: Whether joints have friction, springs, armature and rotors, some of them gyroscopic.
        coupled: Whether some joints of one degree of freedom are coupled to others.
        shuffled: Whether q and v have the joints in a random order.

    Raises:
        UnknownNameError: For an unknown joint type, base type or value of `axes`.
        ArgumentError: For a number out of its range, and for no joint types or no base types.
    """
    rng = np.random.default_rng(whole("seed", seed, least=0))
    extra = np.random.default_rng([seed, 1])  # a separate generator, so that options do not change the tree
    count = int(rng.integers(1, 41)) if links is None else whole("links", links, least=0, most=MOST_LINKS)
    for kind in joints:
        known_name("joint type", kind, ALL_JOINTS)
    for kind in bases:
        known_name("base type", kind, BASES)
    known_name("choice of axes", axes, ("any", "parallel", "perpendicular"))
    if not (len(joints) and len(bases)):
        raise ArgumentError("joints and bases must each name at least one type to draw from")
    spread = number("branching", float(rng.uniform()) if branching is None else branching, least=0.0, most=1.0)
    base = _base(str(rng.choice(list(bases))), rng)
    builder = RobotBuilder(f"random tree {seed}", Link("base", _inertia(rng)), base=base, gravity=gravity)
    directions, names, moving = {"base": 2}, ["base"], []
    for index in range(count):
        parent = str(rng.choice(names)) if rng.uniform() < spread else names[-1]
        name = f"link{index}"
        direction = 1 if axes == "parallel" else (directions[parent] + int(rng.integers(1, 3))) % 3
        joint = _joint(str(rng.choice(list(joints))), f"joint{index}", axes, direction, rng)
        if physics:
            joint = replace(joint, physics=_physics(joint, extra))
        moving += [joint] if joint.nv else []
        at = rng.uniform(-0.5, 0.5, 3) * (np.array([1, 0, 1]) if axes == "parallel" else 1)
        rotation = quaternion_matrix(_unit(rng, 4)) if axes == "any" and rng.uniform() < 0.7 else None
        inertia = _inertia(rng)
        contacts = {f"{name}_tip": rng.uniform(-0.3, 0.3, 3)} if rng.uniform() < 0.3 else {}
        builder.add(joint, Link(name, inertia, contacts), to=parent, at=at, rotation=rotation)
        directions[name] = direction
        names.append(name)
    followers = _couple(builder, moving, extra) if coupled else set()
    order = [joint.name for joint in moving if joint.name not in followers]
    return builder.build(order=list(extra.permutation(order)) if shuffled else None)


def _physics(joint: Joint, rng: np.random.Generator) -> JointPhysics:
    """Return random friction, springs and rotors, similar in size to the forces and inertias of the random links."""
    n = joint.nv
    damping, friction, rest = rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 1.0, n), rng.uniform(-1.0, 1.0, n)
    armature, stiffness = rng.uniform(0.0, 0.2, n), rng.uniform(0.0, 2.0, n)
    if joint.has_quaternion:
        armature, stiffness = armature[:1].sum(), stiffness[:1].sum()
    rotor = Rotor(rng.uniform(0.0, 0.05), rng.uniform(-5.0, 5.0), bool(rng.integers(2))) if n == 1 else None
    return JointPhysics(damping, friction, armature, stiffness, rest, rotor=rotor)


def _couple(builder: RobotBuilder, joints: Sequence[Joint], rng: np.random.Generator) -> set[str]:
    """Couple some joints to others, and return the names of the followers."""
    names = rng.permutation([joint.name for joint in joints if joint.nv == 1])
    pairs = list(zip(names[0::2], names[1::2], strict=False))
    for follower, master in pairs:
        builder.couple(str(follower), str(master), float(rng.uniform(0.3, 2.0)), float(rng.uniform(-1.0, 1.0)))
    return {str(follower) for follower, _ in pairs}


def _base(kind: str, rng: np.random.Generator) -> Base:
    if kind == "euler":
        return EulerBase(str(rng.choice(_SEQUENCES)))
    return {"fixed": FixedBase(), "planar": PlanarBase(), "floating": FloatingBase()}[kind]


def _joint(kind: str, name: str, axes: str, direction: int, rng: np.random.Generator) -> Joint:
    axis = _unit(rng) if axes == "any" else np.eye(3)[direction]
    if kind in ("universal", "constantvelocity"):
        across = _perpendicular(axis, rng) if axes == "any" else np.eye(3)[(direction + 1) % 3]
        return Universal(name, axis, across) if kind == "universal" else ConstantVelocity(name, axis, across)
    if kind == "planar":
        return Planar(name, axis, _perpendicular(axis, rng))
    if kind == "screw":
        return Screw(name, axis, pitch=float(rng.uniform(0.05, 0.5) * rng.choice([-1.0, 1.0])))
    made: dict[str, Joint] = {
        "revolute": Revolute(name, axis),
        "prismatic": Prismatic(name, axis),
        "spherical": Spherical(name, str(rng.choice(_SEQUENCES))),
        "ball": Spherical(name),
        "cylindrical": Cylindrical(name, axis),
        "fixed": Fixed(name),
        "free": Free(name),
    }
    return made[kind]


def _inertia(rng: np.random.Generator) -> Inertia:
    """Return the inertia of a random set of point masses, which is physically possible by construction."""
    points = rng.normal(size=(6, 3)) * rng.uniform(0.02, 0.2, 3)
    mass = float(rng.uniform(0.2, 3.0))
    points = points - points.mean(axis=0)
    second = mass * points.T @ points / len(points)
    return Inertia(mass, rng.uniform(-0.2, 0.2, 3), np.trace(second) * np.eye(3) - second)


def _unit(rng: np.random.Generator, size: int = 3) -> Array:
    x = rng.normal(size=size)
    return x / np.linalg.norm(x)


def _perpendicular(axis: Array, rng: np.random.Generator) -> Array:
    x = np.cross(axis, _unit(rng))
    return x / np.linalg.norm(x)
