"""Planar machines that hop: a telescopic leg after Raibert, and two links with one motor."""

from legged import Limb, Link, PlanarBase, Prismatic, Revolute, Robot, RobotBuilder, box_inertia, rod_inertia
from legged.checked import checked


@checked
def planar_hopper() -> Robot:
    """Return the hopper: a planar trunk, a hip about -y and a prismatic joint along the leg.

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
    """Return the machine: a leg that stands on its lower end, the foot, and a trunk on a hip about y, the only motor.

    At zero both are upright, the foot 0.5 m below the hip and the upper end of the trunk 0.6 m above it.
    """
    leg = Link("leg", rod_inertia(0.5, (0.0, 0.0, -0.5), (0.0, 0.0, 0.0)), {"foot": (0.0, 0.0, -0.5)})
    trunk = Link("trunk", rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.6)))
    return RobotBuilder("two-link hopper", leg, base=PlanarBase()).add(Revolute("hip", "y"), trunk, to="leg").build()
