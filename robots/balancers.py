"""Machines that balance or hop on a point: telescopic leg, two links with one motor, wheels, bend-swivel robot.

Studies, examples and tests of `controllers.balance` use them. At zero each stands upright.
"""

from legged import (
    Box,
    ConstantVelocity,
    Fixed,
    FixedBase,
    JointPhysics,
    Limb,
    Link,
    PlanarBase,
    Prismatic,
    Revolute,
    Robot,
    RobotBuilder,
    Spherical,
    box_inertia,
    cylinder_inertia,
    rod_inertia,
)
from legged.checked import checked


@checked
def planar_hopper() -> Robot:
    """Return a planar hopper after Raibert: a trunk, a hip about -y and a prismatic joint along the leg.

    At zero the foot is 0.6 m below the hip. A positive slide extends the leg.
    """
    foot = Link("foot", rod_inertia(0.3, (0, 0, 0), (0, 0, -0.3)), {"toe": (0, 0, -0.3)})
    leg = (
        Limb()
        .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(0.7, (0, 0, 0), (0, 0, -0.3))))
        .add(Prismatic("slide", "-z"), foot, at=(0, 0, -0.3))
    )
    hopper = RobotBuilder("planar hopper", Link("trunk", box_inertia(5.0, (0.5, 0.2, 0.1))), base=PlanarBase())
    return hopper.attach(leg, to="trunk").build()


@checked
def two_link_hopper() -> Robot:
    """Return a planar leg that stands on its lower end, the foot, and a trunk on a hip about y, the only motor.

    At zero both are upright, the foot 0.5 m below the hip and the upper end of the trunk 0.6 m above it.
    """
    leg = Link("leg", rod_inertia(0.5, (0.0, 0.0, -0.5), (0.0, 0.0, 0.0)), {"foot": (0.0, 0.0, -0.5)})
    trunk = Link("trunk", rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.6)))
    return RobotBuilder("two-link hopper", leg, base=PlanarBase()).add(Revolute("hip", "y"), trunk, to="leg").build()


@checked
def gyroscopic_pendulum() -> Robot:
    """Return a pole on a pivot about y, with a gimbal about z and a wheel in it, 0.4 m above the pivot.

    The pole has 0.5 m and 1 kg, the wheel 0.5 kg and a radius of 5 cm; at zero its axis is x. The gimbal turns by its
    motor, the pivot has none. The wheel spins freely, by the initial velocity.
    """
    pole = Link("pole", rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.5)))
    gimbal = Link("gimbal", box_inertia(0.1, (0.12, 0.12, 0.02)))
    wheel = Link("wheel", cylinder_inertia(0.5, 0.05, (-0.01, 0.0, 0.0), (0.01, 0.0, 0.0)))
    builder = RobotBuilder("gyroscopic pendulum", Link("ground"), base=FixedBase())
    builder.add(Revolute("pivot", "y"), pole, to="ground")
    builder.add(Revolute("gimbal", "z"), gimbal, to="pole", at=(0.0, 0.0, 0.4))
    return builder.add(Revolute("wheel", "x"), wheel, to="gimbal").build()


@checked
def reaction_wheel_pendulum() -> Robot:
    """Return the pole, gimbal and wheel of `gyroscopic_pendulum` with the gimbal fixed and the wheel's axis along y.

    The wheel is turned by the only motor.
    """
    pole = Link("pole", rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.5)))
    frame = Link("frame", box_inertia(0.1, (0.12, 0.12, 0.02)))
    wheel = Link("wheel", cylinder_inertia(0.5, 0.05, (0.0, -0.01, 0.0), (0.0, 0.01, 0.0)))
    builder = RobotBuilder("reaction-wheel pendulum", Link("ground"), base=FixedBase())
    builder.add(Revolute("pivot", "y"), pole, to="ground")
    builder.add(Fixed("mount"), frame, to="pole", at=(0.0, 0.0, 0.4))
    return builder.add(Revolute("wheel", "y"), wheel, to="frame").build()


@checked
def bend_swivel_robot() -> Robot:
    """Return a leg on a point, and a trunk on a constant-velocity joint with the only two motors.

    The point is a ball joint without friction to the ground, so that it carries no moment. At zero leg and trunk are
    upright cylinders, of 0.5 m and 0.5 kg and of 0.6 m and 1 kg; both are symmetric about their shafts, z. Stops of the
    hip at 1.3 rad keep it away from its singularity at pi/2. The shapes are flat, so that pictures show which way they
    face.
    """
    low, hip, top = (0.0, 0.0, 0.0), (0.0, 0.0, 0.5), (0.0, 0.0, 0.6)
    plate, board = Box((0.03, 0.08, 0.5), (0.0, 0.0, 0.25)), Box((0.06, 0.28, 0.6), (0.0, 0.0, 0.3))
    leg = Link("leg", cylinder_inertia(0.5, 0.04, low, hip), shapes=[plate])
    trunk = Link("trunk", cylinder_inertia(1.0, 0.15, low, top), shapes=[board])
    builder = RobotBuilder("bend-swivel robot", Link("ground"), base=FixedBase())
    builder.add(Spherical("support"), leg, to="ground")
    stops = JointPhysics(lower=-1.3, upper=1.3)
    return builder.add(ConstantVelocity("hip", physics=stops), trunk, to="leg", at=hip).build()
