"""A planar hopper with one telescopic leg, after Raibert's machine."""

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
