"""Spatial machines that balance on a point."""

from legged import (
    Box,
    ConstantVelocity,
    FixedBase,
    Link,
    Robot,
    RobotBuilder,
    Spherical,
    cylinder_inertia,
)
from legged.checked import checked


@checked
def bend_swivel_robot() -> Robot:
    """Return the machine: a leg on a point, and a trunk on a constant-velocity joint with the only two motors.

    The point is a ball joint without friction to the ground, so that it carries no moment. At zero leg and trunk are
    upright cylinders, of 0.5 m and 0.5 kg and of 0.6 m and 1 kg; both are symmetric about their shafts, z. Their shapes
    are flat, so that pictures show which way they face.
    """
    low, hip, top = (0.0, 0.0, 0.0), (0.0, 0.0, 0.5), (0.0, 0.0, 0.6)
    plate, board = Box((0.03, 0.08, 0.5), (0.0, 0.0, 0.25)), Box((0.06, 0.28, 0.6), (0.0, 0.0, 0.3))
    leg = Link("leg", cylinder_inertia(0.5, 0.04, low, hip), shapes=[plate])
    trunk = Link("trunk", cylinder_inertia(1.0, 0.15, low, top), shapes=[board])
    builder = RobotBuilder("bend-swivel robot", Link("ground"), base=FixedBase())
    builder.add(Spherical("support"), leg, to="ground")
    return builder.add(ConstantVelocity("hip"), trunk, to="leg", at=hip).build()
