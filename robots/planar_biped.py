"""The paper's planar biped: 7 links, 9 degrees of freedom (section 5.1, Figure 10)."""

from legged import Limb, Link, PlanarBase, Revolute, Robot, RobotBuilder, rod_inertia
from legged.checked import checked

HIP = (0.0, 0.0, -0.25)  # [m], below the trunk's center of mass
DOWN = (0.0, 0.0, -0.5)  # [m], thigh and shank


@checked
def planar_biped() -> Robot:
    """Return the biped: a trunk and legs a and b with thigh, shank and flat foot, contacts at heel and toe.

    The frame of the trunk is at its center of mass. Joints turn about -y, so a leg swings forward with a positive angle
    and a knee bends with a negative one. At zero the legs are straight down and the feet point forward.

    Source:
        Shah, Saha, Dutt 2012, section 5.1. Links are slender rods and the ankle is above the middle of the foot, as in
        the authors' model.
    """
    foot = Link("foot", rod_inertia(0.2, (-0.075, 0, 0), (0.075, 0, 0)), {"heel": (-0.075, 0, 0), "toe": (0.075, 0, 0)})
    leg = (
        Limb()
        .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), DOWN)))
        .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.0, (0, 0, 0), DOWN)), at=DOWN)
        .add(Revolute("ankle", "-y"), foot, at=DOWN)
    )
    trunk = Link("trunk", rod_inertia(5.0, HIP, (0.0, 0.0, 0.25)))
    biped = RobotBuilder("planar biped", trunk, base=PlanarBase())
    for side in "ab":
        biped.attach(leg, to="trunk", at=HIP, prefix=f"{side}_")
    return biped.build()
