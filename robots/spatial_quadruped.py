"""The paper's spatial quadruped: 9 links, 18 degrees of freedom (section 5.2, Figure 15)."""

from legged import Base, Limb, Link, Revolute, Robot, RobotBuilder, Universal, box_inertia, rod_inertia
from legged.checked import checked

DOWN = (0.0, 0.0, -0.3)  # [m], thigh and shank
HIPS = {"leg1_": (-0.5, -0.25, 0), "leg2_": (-0.5, 0.25, 0), "leg3_": (0.5, -0.25, 0), "leg4_": (0.5, 0.25, 0)}  # [m]


@checked
def spatial_quadruped(base: Base | None = None) -> Robot:
    """Return the quadruped: a plate as trunk, and four legs with universal hip, knee and point foot.

    Legs 1 and 2 are the right and left hind legs, 3 and 4 the right and left fore legs. The axes of a hip are +x for
    abduction, then -y. A knee bends with a negative angle.

    Args:
        base: Base type; floating with a quaternion by default. `EulerBase("xyz")` has the authors' coordinates.

    Source:
        Shah, Saha, Dutt 2012, section 5.2; inertias and width as in the authors' model.
    """
    leg = (
        Limb()
        .add(Universal("hip", "x", "-y"), Link("thigh", rod_inertia(1.0, (0, 0, 0), DOWN)))
        .add(Revolute("knee", "-y"), Link("shank", rod_inertia(1.0, (0, 0, 0), DOWN), {"foot": DOWN}), at=DOWN)
    )
    quadruped = RobotBuilder("spatial quadruped", Link("trunk", box_inertia(4.0, (1.0, 0.5, 0.0))), base=base)
    for prefix, hip in HIPS.items():
        quadruped.attach(leg, to="trunk", at=hip, prefix=prefix)
    return quadruped.build()
