"""The hexapod of the authors' toolbox: 13 links, 18 degrees of freedom."""

from legged import Base, Inertia, Limb, Link, Revolute, Robot, RobotBuilder, rod_inertia
from legged.checked import checked

DOWN = (0.0, 0.0, -0.3)  # [m], thigh and shank
HIPS = {
    f"leg{2 * row + side + 1}_": (x, y, 0.0)
    for row, x in enumerate((-0.6, 0.0, 0.6))
    for side, y in enumerate((-0.25, 0.25))
}


@checked
def hexapod(base: Base | None = None) -> Robot:
    """Return the hexapod: six legs with hip and knee about -y and point feet.

    Legs 1, 3, 5 are the right legs from hind to fore, 2, 4, 6 the left legs. The tripods are 1, 4, 5 and 2, 3, 6.

    Args:
        base: Base type; floating with a quaternion by default.

    Source:
        Masses, lengths and principal inertias of the authors' hexapod. The trunk's center of mass is at its middle
        here; in the authors' model it is 0.5 m away, probably by mistake.
    """
    leg = (
        Limb()
        .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), DOWN)))
        .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.0, (0, 0, 0), DOWN), {"foot": DOWN}), at=DOWN)
    )
    trunk = Link("trunk", Inertia(2.0, (0, 0, 0), (0.041667, 0.166667, 0.208333)))
    robot = RobotBuilder("hexapod", trunk, base=base)
    for prefix, hip in HIPS.items():
        robot.attach(leg, to="trunk", at=hip, prefix=prefix)
    return robot.build()
