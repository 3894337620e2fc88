"""Small robots with a fixed base, and logs made from them."""

from typing import Any

import numpy as np

import legged
from legged.identification import Log

INERTIA = 0.05  # [kg m^2] about the axis of the turntable


def turntable(damping: float = 0.3, armature: float = 0.02, friction: float = 0.0) -> legged.Robot:
    """Return a body on a vertical axis, on which gravity exerts no torque."""
    joint = legged.Revolute(
        "axis", "z", physics=legged.JointPhysics(damping=damping, armature=armature, friction=friction)
    )
    disk = legged.Link("disk", legged.Inertia(1.0, (0.0, 0.0, 0.0), np.diag([0.03, 0.03, INERTIA])))
    return (
        legged.RobotBuilder("turntable", legged.Link("ground"), base=legged.FixedBase())
        .add(joint, disk, to="ground")
        .build()
    )


def double_pendulum(**physics: Any) -> legged.Robot:
    """Return two links on horizontal axes."""
    builder = legged.RobotBuilder("double pendulum", legged.Link("ground"), base=legged.FixedBase())
    for name, parent in (("upper", "ground"), ("lower", "upper")):
        joint = legged.Revolute(f"{name}_joint", "y", physics=legged.JointPhysics(**physics))
        inertia = legged.Inertia(0.8, (0.01, 0.02, -0.15), np.diag([8e-3, 9e-3, 2e-3]))
        builder.add(joint, legged.Link(name, inertia), to=parent, at=(0.0, 0.0, 0.0 if parent == "ground" else -0.3))
    return builder.build()


def sweep(robot: legged.Robot, duration: float, period: float = 0.005, size: float = 0.6) -> Log:
    """Return a log of commands: sums of sines with other frequencies for each joint; the readings are placeholders."""
    times = period * np.arange(round(duration / period) + 1)
    n = len(robot.joints)
    desired = np.stack([sum(np.sin(2 * np.pi * f * (k + 1) ** 0.3 * times) for f in (0.4, 1.1, 2.7)) for k in range(n)])
    desired = size / 3 * desired.T
    return Log(times, tuple(joint.name for joint in robot.joints), desired, desired=desired)
