"""The robots of the paper and of its authors' toolbox: planar biped, spatial quadruped, hexapod."""

from legged import (
    Base,
    Inertia,
    Limb,
    Link,
    PlanarBase,
    Revolute,
    Robot,
    RobotBuilder,
    Universal,
    box_inertia,
    rod_inertia,
)
from legged.checked import checked

_BIPED_HIP = (0.0, 0.0, -0.25)  # [m], below the trunk's center of mass
_BIPED_ROD = (0.0, 0.0, -0.5)  # [m], thigh and shank


@checked
def planar_biped() -> Robot:
    """Return the paper's planar biped of 7 links, 9 degrees of freedom: a trunk and legs a and b with flat feet.

    A leg has a hip, a knee and an ankle, and contact points at heel and toe. The frame of the trunk is at its center of
    mass. Joints turn about -y, so a leg swings forward with a positive angle and a knee bends with a negative one. At
    zero the legs are straight down and the feet point forward.

    Source:
        Shah, Saha, Dutt 2012, section 5.1, Figure 10. Links are slender rods and the ankle is above the middle of the
        foot, as in the authors' model.
    """
    foot = Link("foot", rod_inertia(0.2, (-0.075, 0, 0), (0.075, 0, 0)), {"heel": (-0.075, 0, 0), "toe": (0.075, 0, 0)})
    leg = (
        Limb()
        .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), _BIPED_ROD)))
        .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.0, (0, 0, 0), _BIPED_ROD)), at=_BIPED_ROD)
        .add(Revolute("ankle", "-y"), foot, at=_BIPED_ROD)
    )
    trunk = Link("trunk", rod_inertia(5.0, _BIPED_HIP, (0.0, 0.0, 0.25)))
    biped = RobotBuilder("planar biped", trunk, base=PlanarBase())
    for side in "ab":
        biped.attach(leg, to="trunk", at=_BIPED_HIP, prefix=f"{side}_")
    return biped.build()


_ROD = (0.0, 0.0, -0.3)  # [m], thigh and shank of quadruped and hexapod
_QUADRUPED_HIPS = {  # [m], trunk axes
    "leg1_": (-0.5, -0.25, 0),
    "leg2_": (-0.5, 0.25, 0),
    "leg3_": (0.5, -0.25, 0),
    "leg4_": (0.5, 0.25, 0),
}


@checked
def spatial_quadruped(base: Base | None = None) -> Robot:
    """Return the paper's quadruped of 9 links, 18 degrees of freedom: a plate, and four legs with point feet.

    Legs 1 and 2 are the right and left hind legs, 3 and 4 the right and left fore legs. A hip is a universal joint, +x
    for abduction, then -y. A knee bends about -y with a negative angle.

    Args:
        base: Base type; floating with a quaternion by default. `EulerBase("xyz")` has the authors' coordinates.

    Source:
        Shah, Saha, Dutt 2012, section 5.2, Figure 15; inertias and width as in the authors' model.
    """
    leg = (
        Limb()
        .add(Universal("hip", "x", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), _ROD)))
        .add(
            Revolute("knee", "-y"),
            Link("shank", rod_inertia(1.0, (0, 0, 0), _ROD), {"foot": _ROD}),
            at=_ROD,
        )
    )
    quadruped = RobotBuilder("spatial quadruped", Link("trunk", box_inertia(4.0, (1.0, 0.5, 0.0))), base=base)
    for prefix, hip in _QUADRUPED_HIPS.items():
        quadruped.attach(leg, to="trunk", at=hip, prefix=prefix)
    return quadruped.build()


_HEXAPOD_HIPS = {  # [m], trunk axes
    f"leg{2 * row + side + 1}_": (x, y, 0.0)
    for row, x in enumerate((-0.6, 0.0, 0.6))
    for side, y in enumerate((-0.25, 0.25))
}


@checked
def hexapod(base: Base | None = None) -> Robot:
    """Return the authors' hexapod of 13 links, 18 degrees of freedom: six legs with hip, knee and point foot.

    Hips and knees turn about -y. Legs 1, 3, 5 are the right legs from hind to fore, 2, 4, 6 the left legs. The
    tripods are 1, 4, 5 and 2, 3, 6.

    Args:
        base: Base type; floating with a quaternion by default.

    Source:
        Masses, lengths and principal inertias of the authors' hexapod. The trunk's center of mass is at its middle
        here; in the authors' model it is 0.5 m away, probably by mistake.
    """
    leg = (
        Limb()
        .add(Revolute("hip", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), _ROD)))
        .add(
            Revolute("knee", "-y"),
            Link("shank", rod_inertia(1.0, (0, 0, 0), _ROD), {"foot": _ROD}),
            at=_ROD,
        )
    )
    trunk = Link("trunk", Inertia(2.0, (0, 0, 0), (0.041667, 0.166667, 0.208333)))
    robot = RobotBuilder("hexapod", trunk, base=base)
    for prefix, hip in _HEXAPOD_HIPS.items():
        robot.attach(leg, to="trunk", at=hip, prefix=prefix)
    return robot.build()
