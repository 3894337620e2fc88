"""A planar hopping machine of two links with one motor."""

from legged import Link, PlanarBase, Revolute, Robot, RobotBuilder, rod_inertia
from legged.checked import checked


@checked
def two_link_hopper() -> Robot:
    """Return the machine: a leg that stands on its lower end, the foot, and a trunk on a hip about y, the only motor.

    At zero both are upright, the foot 0.5 m below the hip and the upper end of the trunk 0.6 m above it.
    """
    leg = Link("leg", rod_inertia(0.5, (0.0, 0.0, -0.5), (0.0, 0.0, 0.0)), {"foot": (0.0, 0.0, -0.5)})
    trunk = Link("trunk", rod_inertia(1.0, (0.0, 0.0, 0.0), (0.0, 0.0, 0.6)))
    return RobotBuilder("two-link hopper", leg, base=PlanarBase()).add(Revolute("hip", "y"), trunk, to="leg").build()
