"""A humanoid with 30 joint degrees of freedom and the proportions of a person of 1.75 m and 70 kg."""

from legged import (
    Base,
    JointPhysics,
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
    turn about -y: a knee bends with a negative angle, an elbow with a positive one. All joints have stops at the limits
    of a person's joints. They keep the middle angles of Euler sequences 0.27 rad or more away from gimbal lock, near
    which rates and the error of time steps have no bound.

    Args:
        base: Base type of the pelvis; floating with a quaternion by default.

    Source:
        Masses and lengths of segments as fractions of the body's, Winter, "Biomechanics and Motor Control of Human
        Movement", 4th edition 2009, Table 4.1. The segments are boxes, cylinders and a sphere. Stops are near the usual
        ranges of a person's joints, rounded, but arms abduct by 1.3 rad only; they reach higher by flexion.
    """
    pelvis = Link("pelvis", box_inertia(9.9, (0.2, 0.3, 0.2), (0.0, 0.0, 0.05)))
    robot = RobotBuilder("humanoid", pelvis, base=base)
    waist = _stops((-0.8, 0.8), (-0.5, 1.2), (-0.6, 0.6))
    chest = Link("chest", box_inertia(24.9, (0.22, 0.34, 0.45), (0.0, 0.0, 0.22)))
    robot.add(Spherical("waist", "zyx", physics=waist), chest, to="pelvis", at=(0.0, 0.0, 0.15))
    head = Link("head", sphere_inertia(5.7, 0.11, (0.0, 0.0, 0.16)))
    robot.add(Revolute("neck", "z", physics=_stops((-1.4, 1.4))), head, to="chest", at=(0.0, 0.0, 0.45))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot.attach(_leg(sign), to="pelvis", at=(0.0, sign * HIP, -0.05), prefix=f"{side}_")
        robot.attach(_arm(sign), to="chest", at=(0.0, sign * SHOULDER, 0.4), prefix=f"{side}_")
    return robot.build()


def _stops(*ranges: tuple[float, float]) -> JointPhysics:
    """Return the stops of a joint at the ends of the ranges of its coordinates, [rad]."""
    return JointPhysics(lower=[min(ends) for ends in ranges], upper=[max(ends) for ends in ranges])


def _leg(sign: float) -> Limb:
    """Return the leg of the left (1) or right side (-1); abduction, inversion and rotation mirror each other."""
    thigh = Link("thigh", cylinder_inertia(7.0, 0.07, (0, 0, 0), (0, 0, -0.42)))
    shank = Link("shank", cylinder_inertia(3.2, 0.05, (0, 0, 0), (0, 0, -0.43)))
    foot = Link("foot", box_inertia(1.0, (0.25, 0.09, 0.07), (0.065, 0, -0.035)), SOLE)
    hip = _stops((-0.8 * sign, 0.8 * sign), (-0.5 * sign, 0.8 * sign), (-2.1, 0.5))
    ankle = _stops((-0.9, 0.4), (-0.6 * sign, 0.3 * sign))
    return (
        Limb()
        .add(Spherical("hip", "zxy", physics=hip), thigh)
        .add(Revolute("knee", "-y", physics=_stops((-2.4, 0.1))), shank, at=(0, 0, -0.42))
        .add(Universal("ankle", "-y", "x", physics=ankle), foot, at=(0, 0, -0.43))
    )


def _arm(sign: float) -> Limb:
    """Return the arm of the left (1) or right side (-1)."""
    upper = Link("upper_arm", cylinder_inertia(2.0, 0.045, (0, 0, 0), (0, 0, -0.33)))
    lower = Link("forearm", cylinder_inertia(1.1, 0.04, (0, 0, 0), (0, 0, -0.26)))
    hand = Link("hand", box_inertia(0.4, (0.08, 0.03, 0.18), (0, 0, -0.09)))
    shoulder = _stops((-3.1, 1.0), (-0.8 * sign, 1.3 * sign), (-1.2 * sign, 1.6 * sign))
    wrist = _stops((-1.4, 1.4), (-1.3 * sign, 1.2 * sign), (-0.4, 0.5))
    return (
        Limb()
        .add(Spherical("shoulder", "yxz", physics=shoulder), upper)
        .add(Revolute("elbow", "-y", physics=_stops((-0.1, 2.6))), lower, at=(0, 0, -0.33))
        .add(Spherical("wrist", "zxy", physics=wrist), hand, at=(0, 0, -0.26))
    )
