"""A planar five-bar leg: two motors at the hip, two thighs, and two shanks that meet at the foot."""

from legged import Base, Link, PlanarBase, Revolute, box_inertia, rod_inertia
from legged.checked import checked
from legged.loops import ClosedRobot, LoopBuilder
from legged.robot.placement import Vector


@checked
def five_bar_leg(base: Base | None = None, gravity: Vector = (0.0, 0.0, -9.81)) -> ClosedRobot:
    """Return a trunk of 3 kg on the leg; the loop joint connects the shanks at the foot.

    The hips are 0.1 m apart, thighs 0.15 m and shanks 0.3 m long. Joints turn about -y; thigh angles
    are relative to straight down, shank angles relative to the thigh. `legged.loops.assemble` closes the leg.

    Args:
        base: Base type of the trunk; planar by default.
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes.
    """
    thigh, shank = (0.0, 0.0, -0.15), (0.0, 0.0, -0.3)
    leg = LoopBuilder(
        "five-bar leg", Link("trunk", box_inertia(3.0, (0.3, 0.15, 0.1))), base=base or PlanarBase(), gravity=gravity
    )
    for side, x in (("front", 0.05), ("rear", -0.05)):
        foot = {"foot": shank} if side == "rear" else {}
        leg.add(
            Revolute(f"{side}_hip", "-y"),
            Link(f"{side}_thigh", rod_inertia(0.2, (0, 0, 0), thigh)),
            to="trunk",
            at=(x, 0, 0),
        )
        shin = Link(f"{side}_shank", rod_inertia(0.15, (0, 0, 0), shank), foot)
        leg.add(Revolute(f"{side}_knee", "-y"), shin, to=f"{side}_thigh", at=thigh)
    ends = {"at": shank, "child_at": shank}
    return leg.close(Revolute("ankle", "-y"), parent="rear_shank", child="front_shank", **ends).build()
