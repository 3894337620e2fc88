"""A delta robot: three arms, three parallelograms of rods, and a platform that translates without rotation."""

import numpy as np

from legged import FixedBase, Limb, Link, Revolute, Spherical, Universal, cylinder_inertia, rod_inertia, rpy
from legged.checked import checked
from legged.loops import ClosedRobot, LoopBuilder

BASE, PLATFORM = 0.2, 0.06  # [m], radii to the joints
ARM, ROD, SPREAD = 0.25, 0.6, 0.1  # [m], lengths, and the distance between the rods of a parallelogram


@checked
def delta() -> ClosedRobot:
    """Return the robot: 18 degrees of freedom of the spanning tree, 15 constraints, and 3 degrees of freedom.

    The arms turn about tangents of the base. They point outward at zero and downward with positive angles. Each carries
    two rods on universal joints. A ball joint connects the platform to the first rod, and five more ball joints close
    the loops, which are closed at zero.
    """
    reach = BASE + ARM - PLATFORM
    tip = np.array([-reach, 0.0, -np.sqrt(ROD**2 - reach**2)])  # of a rod at zero, from the elbow
    arm = Limb().add(Revolute("shoulder", "y"), Link("arm", rod_inertia(0.3, (0, 0, 0), (ARM, 0, 0))))
    for side, y in (("left", SPREAD / 2), ("right", -SPREAD / 2)):
        bar = Link(f"{side}_rod", rod_inertia(0.1, (0, 0, 0), tip))
        across = tuple(np.cross(tip, (0, 1, 0)) / ROD)
        arm.add(Universal(f"{side}_elbow", "y", across), bar, at=(ARM, y, 0), to="arm")
    robot = LoopBuilder("delta", Link("base", cylinder_inertia(5.0, BASE, (0, 0, 0), (0, 0, 0.02))), base=FixedBase())
    corners = [(k, side, y) for k in range(3) for side, y in (("left", SPREAD / 2), ("right", -SPREAD / 2))]
    for k in range(3):
        turn = rpy(0.0, 0.0, 2 * np.pi * k / 3)
        robot.attach(arm, to="base", at=turn @ (BASE, 0, 0), rotation=turn, prefix=f"{'abc'[k]}_")
    platform = Link("platform", cylinder_inertia(0.2, PLATFORM, (0, 0, 0), (0, 0, 0.01)))
    for k, side, y in corners:
        turn = rpy(0.0, 0.0, 2 * np.pi * k / 3)
        corner, name = turn @ (PLATFORM, y, 0), f"{'abc'[k]}_{side}"
        if k == 0 and side == "left":  # the platform's origin is at its own joint
            first = corner
            moved = Link(platform.name, platform.inertia.moved(np.eye(3), -first))
            robot.add(Spherical(f"{name}_ball"), moved, to=f"{name}_rod", at=tip)
        else:
            ball = Spherical(f"{name}_ball")
            robot.close(ball, parent=f"{name}_rod", child="platform", at=tip, child_at=corner - first)
    return robot.build()
