"""Random trees with a loop, closed at a random configuration."""

import numpy as np

import legged
from legged import loops
from legged.rotations import quaternion_matrix
from legged.spatial import Array

JOINTS = {
    "ball": (legged.Spherical("closing"), 3),
    "revolute": (legged.Revolute("closing", "y"), 5),
    "universal": (legged.Universal("closing", "x", (0.6, 0.0, 0.8)), 4),
    "constant velocity": (legged.ConstantVelocity("closing", "x", (0.0, 0.6, 0.8)), 4),
    "prismatic": (legged.Prismatic("closing", (0.0, 0.6, 0.8)), 5),
    "cylindrical": (legged.Cylindrical("closing", (0.0, 0.6, 0.8)), 4),
    "planar": (legged.Planar("closing", "x", "z"), 3),
    "fixed": (legged.Fixed("closing"), 6),
    "rod": (loops.Rod("closing", 0.7), 1),
    "rolling": (loops.Rolling("closing", 0.2, "y"), 3),
    "sliding": (loops.Sliding("closing", (0.0, 0.6, 0.8)), 1),
}


def looped(seed: int, joint, **options) -> tuple[loops.ClosedRobot, Array, np.random.Generator]:
    """Return a random tree with a loop between two links, closed at a random configuration."""
    rng = np.random.default_rng(seed)
    robot = legged.random_tree(seed, 9, shuffled=seed % 2 == 0, **options)
    q = legged.random_configuration(robot, rng)
    # The last link and the base part early, so that the loop has joints enough.
    parent, child = robot.links[0].name, max(robot.links, key=lambda link: len(robot.ancestors(link.body))).name
    turn, at = quaternion_matrix(_unit(rng)), rng.normal(size=3) * 0.3
    R, o = legged.frame_pose(robot, q, legged.Frame(parent, at, turn))
    gap = np.zeros(3)
    if isinstance(joint, loops.Rod):
        gap = joint.length * np.array([0.6, 0.0, 0.8])
    elif isinstance(joint, loops.Rolling):
        gap = np.array([0.1, joint.radius, 0.3])
    elif isinstance(joint, loops.Sliding):
        gap = np.array([0.2, 0.4, -0.3])
    R_child, o_child = legged.frame_pose(robot, q, child)
    where = {"child_at": R_child.T @ (o + R @ gap - o_child), "child_rotation": R_child.T @ R}
    return loops.close(robot, joint, parent=parent, child=child, at=at, rotation=turn, **where), q, rng


def _unit(rng):
    p = rng.normal(size=4)
    return p / np.linalg.norm(p)


def parallelogram(extra: bool):
    """A coupler of 3 kg on two or three parallel cranks of 0.5 m and 1 kg."""
    bar, crank = (
        legged.rod_inertia(3.0, (0, 0, 0), (1, 0, 0)),
        legged.Link("first", legged.rod_inertia(1.0, (0, 0, 0), (0.5, 0, 0))),
    )
    builder = loops.LoopBuilder("parallelogram", legged.Link("ground", legged.point_mass(1)), base=legged.FixedBase())
    builder.add(legged.Revolute("a", "-y"), crank, to="ground")
    builder.add(legged.Revolute("b", "-y"), legged.Link("coupler", bar), to="first", at=(0.5, 0, 0))
    for name, x in (("second", 1.0), ("third", 0.4))[: 1 + extra]:
        other = legged.Link(name, crank.inertia)
        builder.add(legged.Revolute(f"{name} foot", "-y"), other, to="ground", at=(x, 0, 0))
        ends = {"at": (0.5, 0, 0), "child_at": (x, 0, 0)}
        builder.close(legged.Revolute(f"{name} head", "-y"), parent=name, child="coupler", **ends)
    return builder.build()


def two_arms(base) -> legged.Robot:
    """Two arms of seven joints on one base, opposite each other."""
    arm = legged.Limb()
    for k, axis in enumerate("zyzyzyx"):
        link = legged.Link(f"link{k}", legged.box_inertia(1.0, (0.1, 0.12, 0.3), (0, 0, 0.15)))
        arm.add(legged.Revolute(f"joint{k}", axis), link, at=(0, 0, 0.3 * (k > 0)))
    builder = legged.RobotBuilder("two arms", legged.Link("base", legged.box_inertia(5.0, (1.0, 0.3, 0.2))), base=base)
    for side, x in (("left_", -0.4), ("right_", 0.4)):
        builder.attach(arm, to="base", at=(x, 0, 0), prefix=side)
    return builder.build()
