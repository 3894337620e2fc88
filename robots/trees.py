"""Robots of any number of links: serial chains, trees with a constant branching factor, and centipedes."""

import numpy as np

from legged import Base, Inertia, Limb, Link, Revolute, Robot, RobotBuilder, cylinder_inertia, rod_inertia, rpy
from legged.arguments import MOST_LINKS, number, whole
from legged.checked import checked


@checked
def chain(n: int, *, twist: float = 0.0, base: Base | None = None, seed: int = 0) -> Robot:
    """Return a chain of n links with revolute joints about z.

    Args:
        n: Number of links without the base.
        twist: Angle from one joint axis to the next about the common normal, [rad]: 0 makes the axes parallel, pi/2
            perpendicular.
        base: Base type; floating with a quaternion by default.
        seed: Seed of the random inertias, which have no zero entries.
    """
    whole("n", n, least=1, most=MOST_LINKS)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    robot = RobotBuilder(f"{n}-link chain", Link("base", _random_inertia(rng)), base=base)
    limb = Limb()
    for k in range(n):
        at, turn = ((0.3, 0.0, 0.1), rpy(twist, 0.0, 0.0)) if k else ((0.0, 0.0, 0.0), None)
        limb.add(Revolute(f"joint{k + 1}", "z"), Link(f"link{k + 1}", _random_inertia(rng)), at=at, rotation=turn)
    return robot.attach(limb, to="base").build()


def _random_inertia(rng: np.random.Generator) -> Inertia:
    points = rng.normal(size=(6, 3)) * 0.1
    points -= points.mean(axis=0)
    second = points.T @ points / len(points)
    return Inertia(1.0, rng.uniform(0.05, 0.2, 3), np.trace(second) * np.eye(3) - second)


@checked
def star(legs: int, joints: int = 3, *, twist: float = 0.7, base: Base | None = None, seed: int = 0) -> Robot:
    """Return a robot with equal legs around a trunk, each a serial chain of links with revolute joints.

    No leg is rotated by a quarter turn, so that all have the same number of operations.

    Args:
        legs: Number of legs.
        joints: Number of joints of a leg.
        twist: Angle from one joint axis of a leg to the next, [rad].
        base: Base type; floating with a quaternion by default.
        seed: Seed of the random inertias, which have no zero entries; those of all legs are equal.
    """
    whole("legs", legs, least=1, most=MOST_LINKS)
    whole("joints", joints, least=1, most=MOST_LINKS // legs)
    rng = np.random.default_rng(whole("seed", seed, least=0))
    robot, leg = RobotBuilder(f"{legs}-legged star", Link("base", _random_inertia(rng)), base=base), Limb()
    for k in range(joints):
        at, turn = ((0.3, 0.0, 0.1), rpy(twist, 0.0, 0.0)) if k else ((0.5, 0.0, 0.0), rpy(np.pi / 4, 0.0, 0.0))
        leg.add(Revolute(f"joint{k + 1}", "z"), Link(f"link{k + 1}", _random_inertia(rng)), at=at, rotation=turn)
    for n in range(legs):
        robot.attach(leg, to="base", rotation=rpy(0.0, 0.0, 0.3 + 2 * np.pi * n / legs), prefix=f"leg{n + 1}_")
    return robot.build()


@checked
def tree(
    n: int, *, branching: float = 1, taper: float = 1.0, twist: float = np.pi / 2, base: Base | None = None
) -> Robot:
    """Return a tree of n links, each connected to the end of its parent by a revolute joint.

    The base is link 0, and the parent of link k is link floor((k - 1) / branching). A branching factor of 1 gives a
    chain, 2 a binary tree, n a star.

    Args:
        n: Number of links without the base.
        branching: Children per link; 1.5 gives one and two alternately.
        taper: Ratio of a link's length and radius to its parent's; the mass ratio is its third power.
        twist: Angle from one joint axis to the next, [rad].
        base: Base type; floating with a quaternion by default.

    Source:
        Such trees are the subject of Featherstone, "An empirical study of the joint space inertia matrix",
        International Journal of Robotics Research 23(9), 2004.
    """
    whole("n", n, least=1, most=MOST_LINKS)
    number("branching", branching, least=1)
    number("taper", taper, above=0)
    builder = RobotBuilder(f"tree of {n} links, branching {branching:g}", _tapered_link("link0", 1.0), base=base)
    depth = {0: 0}
    for k in range(1, n + 1):
        parent = int((k - 1) / branching)
        depth[k] = depth[parent] + 1
        at = (0.0, 0.0, taper ** depth[parent])
        turn = rpy(0.0, 0.0, twist)
        joint = Revolute(f"joint{k}", "x")
        builder.add(joint, _tapered_link(f"link{k}", taper ** depth[k]), to=f"link{parent}", at=at, rotation=turn)
    return builder.build()


def _tapered_link(name: str, size: float) -> Link:
    """Return a cylinder of length `size` and mass size^3 along z."""
    return Link(name, cylinder_inertia(size**3, 0.05 * size, (0, 0, 0), (0, 0, size)))


_SEGMENT = Inertia(0.3, (-0.05, 0.0, 0.0), (1.6e-4, 3.7e-4, 3.7e-4))
_SPACING = (-0.1, 0.0, 0.0)  # [m], from one segment of a centipede to the next
_WIDTH = 0.03  # [m], from the middle of the trunk to a hip


@checked
def centipede(pairs: int = 10, *, base: Base | None = None) -> Robot:
    """Return a centipede with 7 `pairs` - 1 joints: trunk joints about z, and legs with three joints each.

    The modules of the trunk are `segment1_`, `segment2_`, ... behind the head, those of the legs `left0_`, `right0_`,
    `left1_`, ... A leg has a hip joint about z, a hip joint and a knee about x, and a point foot.

    Args:
        pairs: Number of pairs of legs, one at the head and one at each segment behind it.
        base: Base type of the head; floating with a quaternion by default.
    """
    whole("pairs", pairs, least=1, most=MOST_LINKS // 7)
    robot = RobotBuilder(f"centipede with {pairs} pairs of legs", Link("head", _SEGMENT), base=base)
    segment = Limb().add(Revolute("bend", "z"), Link("segment", _SEGMENT))
    below = "head"
    for k in range(pairs):
        if k:
            robot.attach(segment, to=below, at=_SPACING, prefix=f"segment{k}_")
            below = f"segment{k}_segment"
        for side, sign in (("left", 1.0), ("right", -1.0)):
            robot.attach(_leg(sign), to=below, at=(-0.05, sign * _WIDTH, 0.0), prefix=f"{side}{k}_")
    return robot.build()


def _leg(sign: float) -> Limb:
    """Return a left leg for sign 1, a right leg for sign -1."""
    coxa, femur, tibia = (0.0, sign * 0.02, 0.0), (0.0, sign * 0.05, 0.02), (0.0, sign * 0.02, -0.08)
    return (
        Limb()
        .add(Revolute("swing", "z"), Link("coxa", rod_inertia(0.01, (0, 0, 0), coxa)))
        .add(Revolute("lift", "x"), Link("femur", rod_inertia(0.02, (0, 0, 0), femur)), at=coxa)
        .add(Revolute("knee", "x"), Link("tibia", rod_inertia(0.02, (0, 0, 0), tibia), {"foot": tibia}), at=femur)
    )
