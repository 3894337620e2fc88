"""The biped of Wendlandt 1997: 13 bodies, 12 joints, 18 degrees of freedom, with the proportions of a person."""

import numpy as np

from legged import (
    Base,
    Inertia,
    JointPhysics,
    Limb,
    Link,
    Revolute,
    Robot,
    RobotBuilder,
    State,
    box_inertia,
    sphere_inertia,
)
from legged.arguments import number
from legged.checked import checked
from legged.robot.shapes import Box

HEIGHT, MASS = 1.72, 65.0  # [m], [kg], of the person; at this height the feet are just above the ground initially
THIGH, SHANK, ANKLE, FOOT = 0.245 * HEIGHT, 0.246 * HEIGHT, 0.039 * HEIGHT, 0.152 * HEIGHT  # [m]; ankle over the sole
HIPS, TRUNK = 0.191 * HEIGHT, 0.626 * 0.288 * HEIGHT  # [m], distance of the hips; trunk's center of mass over them
HEEL, SOLE = 0.25, 0.055 * HEIGHT  # distance from heel to ankle over the foot's length; [m], width of the foot
CHEST = (0.2, 0.259 * HEIGHT, 0.6)  # [m], shape of the trunk for contact, centered at its center of mass
BETWEEN = sphere_inertia(0.1, 0.03)  # [kg], [m]: bodies between intersecting axes; their mass is part of thigh or shank
# Joints of a leg: ranges [degrees], efforts [N m], and the speed at which the available torque is zero [rad/s].
RANGES = ((-45.0, 45.0), (-30.0, 120.0), (-45.0, 45.0), (-150.0, 0.0), (-35.0, 35.0), (-50.0, 60.0))
EFFORTS, SPEED = (150.0, 250.0, 80.0, 300.0, 60.0, 200.0), 20.0
CROUCH = (0.0, 40.0, 0.0, -77.4595, 0.0, 42.4595)  # [degrees], joints of a leg at the start of the paper's experiment


@checked
def spatial_biped(base: Base | None = None, mass: float = MASS, foot: float = FOOT) -> Robot:
    """Return the biped: a trunk on two legs, with three intersecting axes at a hip, a knee, and two axes at an ankle.

    Names end with the paper's numbers: body 1 is the trunk, its origin at its center of mass; the left leg has 2 to 7,
    the right leg 8 to 13; joint k carries body k. A hip turns about x, -y, z (joints 2, 3, 4 and 8, 9, 10), a knee
    about -y (5, 11), an ankle about x, -y (6, 7 and 12, 13). Bodies 2, 3, 6 and 8, 9, 12 are between these axes.

    The x axis points forward and the y axis to the left, as for every robot here. At zero the robot stands upright.
    Legs swing forward with positive angles about -y, and knees bend with negative angles. The model is the mirror image
    of the paper's in x: the paper's joint angles put flat feet under a trunk that leans by 5 degrees about -y only if
    the knees point to -x, so the paper's biped faces -x. Mirroring keeps the paper's joint angles, and its left leg on
    the side that the block hits.

    Args:
        base: Base type of the trunk; floating with a quaternion by default.
        mass: Mass of the person, [kg].
        foot: Length of the feet, [m].

    Source:
        Bodies, joints and pose are those of Wendlandt 1997, sections 2 and 4, which gives no lengths and masses. These
        are fractions of a person's, Winter, "Biomechanics and Motor Control of Human Movement", 4th edition 2009,
        Figure 4.1 and Table 4.1; body 1 has the mass of head, arms and trunk. Depths of segments and ranges and efforts
        of joints are ours. With a mass of 65 kg, a body-mass index of 22, the feet land at the times of the paper's
        experiment; they land 0.1 s earlier with 75 kg and 0.06 s later with 60 kg.
    """
    number("foot", foot, "m", above=0.0)
    trunk = Link("trunk_1", _trunk(mass), shapes=(Box(CHEST),))
    biped = RobotBuilder("spatial biped", trunk, base=base)
    for side, sign, first in (("left", 1.0, 2), ("right", -1.0, 8)):
        biped.attach(_leg(first, mass, foot), to="trunk_1", at=(0.0, sign * HIPS / 2, -TRUNK), prefix=f"{side}_")
    return biped.build()


def crouch(robot: Robot) -> State:
    """Return the initial state of the paper's experiment: at rest, with level soles 1.6 mm over the ground."""
    angles = np.radians(CROUCH + CROUCH)
    joints = {joint.name: angle for joint, angle in zip(robot.joints, angles, strict=True)}
    lean = np.radians([0.0, 5.0, 0.0])
    return robot.state(base_position=(0.0, 0.0, 1.035), base_orientation=lean, joints=joints)


def _leg(first: int, mass: float, length: float) -> Limb:
    """Return a leg, from the hip to the foot.

    Args:
        first: Number of its first body and joint. mass: Of the person, [kg]. length: Of the foot, [m].
    """
    names = ("hip", "hip", "thigh", "shank", "ankle", "foot")
    hip_x, hip_y, thigh, shank, ankle, foot = (f"{name}_{first + k}" for k, name in enumerate(names))
    joints = {"hip_x": "x", "hip_y": "-y", "hip_z": "z", "knee": "-y", "ankle_x": "x", "ankle_y": "-y"}
    x, y, z, knee, roll, pitch = (
        Revolute(f"{name}_{first + k}", axis, physics=_physics(k)) for k, (name, axis) in enumerate(joints.items())
    )
    inertias = _segment(0.1 * mass - 0.2, THIGH, 0.323, 0.07), _segment(0.0465 * mass - 0.1, SHANK, 0.302, 0.05)
    return (
        Limb()
        .add(x, Link(hip_x, BETWEEN))
        .add(y, Link(hip_y, BETWEEN))
        .add(z, Link(thigh, inertias[0]))
        .add(knee, Link(shank, inertias[1]), at=(0.0, 0.0, -THIGH))
        .add(roll, Link(ankle, BETWEEN), at=(0.0, 0.0, -SHANK))
        .add(pitch, _foot(foot, 0.0145 * mass, length))
    )


def _physics(k: int) -> JointPhysics:
    """Return the range, the effort and the speed of joint k of a leg, from 0."""
    lower, upper = np.radians(RANGES[k])
    return JointPhysics(lower=lower, upper=upper, effort=EFFORTS[k], speed=SPEED)


def _trunk(mass: float) -> Inertia:
    """Return the inertia of a box with the depth and width of the chest and the radius of gyration of a person."""
    depth, width, _ = CHEST
    height = np.sqrt(12 * (0.496 * 0.288 * HEIGHT) ** 2 - depth**2)
    return box_inertia(0.678 * mass, (depth, width, height))


def _segment(mass: float, length: float, gyration: float, radius: float) -> Inertia:
    """Return the inertia of a segment below its joint; its radius of gyration is a fraction of its length."""
    across, along = mass * (gyration * length) ** 2, mass * radius**2 / 2
    return Inertia(mass, (0.0, 0.0, -0.433 * length), (across, across, along))


def _foot(name: str, mass: float, length: float) -> Link:
    """Return a foot as a box with contact points at the corners of its sole; its origin is the ankle."""
    heel = -HEEL * length
    ends = {"heel": heel, "toe": heel + length}
    sides = {"left": SOLE / 2, "right": -SOLE / 2}
    sole = {f"{end}_{side}": (x, y, -ANKLE) for end, x in ends.items() for side, y in sides.items()}
    return Link(name, box_inertia(mass, (length, SOLE, ANKLE), (heel + length / 2, 0.0, -ANKLE / 2)), sole)
