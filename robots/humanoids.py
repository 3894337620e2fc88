"""A humanoid with 30 joint degrees of freedom and the proportions of a person of 1.75 m and 70 kg."""

from legged import (
    Base,
    Limb,
    Link,
    Revolute,
    Robot,
    RobotBuilder,
    Spherical,
    Universal,
    box_inertia,
    cylinder_inertia,
    sphere_inertia,
)
from legged.checked import checked

HIP, SHOULDER = 0.09, 0.19  # [m], half widths
SOLE = {f"{x}_{y}": ((0.19 if x == "toe" else -0.06), (0.045 if y == "left" else -0.045), -0.07)
        for x in ("heel", "toe") for y in ("left", "right")}  # [m], from the ankle  # fmt: skip


@checked
def humanoid(base: Base | None = None) -> Robot:
    """Return the humanoid: pelvis, chest, head, a waist with three axes, arms with seven and legs with six joints each.

    At zero it stands upright with arms and legs straight down, and the soles 0.87 m below the hips. Knees and elbows
    turn about -y: a knee bends with a negative angle, an elbow with a positive one.

    Args:
        base: Base type of the pelvis; floating with a quaternion by default.

    Source:
        Masses and lengths of segments as fractions of the body's, Winter, "Biomechanics and Motor Control of Human
        Movement", 4th edition 2009, Table 4.1. The segments are boxes, cylinders and a sphere.
    """
    pelvis = Link("pelvis", box_inertia(9.9, (0.2, 0.3, 0.2), (0.0, 0.0, 0.05)))
    robot = RobotBuilder("humanoid", pelvis, base=base)
    robot.add(Spherical("waist", "zyx"), Link("chest", box_inertia(24.9, (0.22, 0.34, 0.45), (0.0, 0.0, 0.22))),
              to="pelvis", at=(0.0, 0.0, 0.15))  # fmt: skip
    robot.add(
        Revolute("neck", "z"), Link("head", sphere_inertia(5.7, 0.11, (0.0, 0.0, 0.16))), to="chest", at=(0, 0, 0.45)
    )
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot.attach(_leg(), to="pelvis", at=(0.0, sign * HIP, -0.05), prefix=f"{side}_")
        robot.attach(_arm(), to="chest", at=(0.0, sign * SHOULDER, 0.4), prefix=f"{side}_")
    return robot.build()


def _leg() -> Limb:
    thigh = Link("thigh", cylinder_inertia(7.0, 0.07, (0, 0, 0), (0, 0, -0.42)))
    shank = Link("shank", cylinder_inertia(3.2, 0.05, (0, 0, 0), (0, 0, -0.43)))
    foot = Link("foot", box_inertia(1.0, (0.25, 0.09, 0.07), (0.065, 0, -0.035)), SOLE)
    return (
        Limb()
        .add(Spherical("hip", "zxy"), thigh)
        .add(Revolute("knee", "-y"), shank, at=(0, 0, -0.42))
        .add(Universal("ankle", "-y", "x"), foot, at=(0, 0, -0.43))
    )


def _arm() -> Limb:
    upper = Link("upper_arm", cylinder_inertia(2.0, 0.045, (0, 0, 0), (0, 0, -0.33)))
    lower = Link("forearm", cylinder_inertia(1.1, 0.04, (0, 0, 0), (0, 0, -0.26)))
    hand = Link("hand", box_inertia(0.4, (0.08, 0.03, 0.18), (0, 0, -0.09)))
    return (
        Limb()
        .add(Spherical("shoulder", "yxz"), upper)
        .add(Revolute("elbow", "-y"), lower, at=(0, 0, -0.33))
        .add(Spherical("wrist", "zxy"), hand, at=(0, 0, -0.26))
    )
