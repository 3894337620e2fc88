"""Spatial machines that balance on a point."""

from legged import (
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
    upright cylinders, of 0.5 m and 0.5 kg and of 0.6 m and 1 kg; both are symmetric about their shafts, z.
    """
    leg = Link("leg", cylinder_inertia(0.5, 0.04, (0.0, 0.0, 0.0), (0.0, 0.0, 0.5)))
    trunk = Link("trunk", cylinder_inertia(1.0, 0.15, (0.0, 0.0, 0.0), (0.0, 0.0, 0.6)))
    builder = RobotBuilder("bend-swivel robot", Link("ground"), base=FixedBase())
    builder.add(Spherical("support"), leg, to="ground")
    return builder.add(ConstantVelocity("hip"), trunk, to="leg", at=(0.0, 0.0, 0.5)).build()
