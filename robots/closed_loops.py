"""Robots with closed loops: a four-bar linkage, five-bar legs and a delta robot."""

import numpy as np

from legged import (
    Base,
    FixedBase,
    FloatingBase,
    Limb,
    Link,
    PlanarBase,
    Revolute,
    Spherical,
    Universal,
    box_inertia,
    cylinder_inertia,
    point_mass,
    rod_inertia,
    rpy,
)
from legged.arguments import number
from legged.checked import checked
from legged.loops import ClosedRobot, LoopBuilder
from legged.robot.placement import Vector


@checked
def four_bar(ground: float = 0.5, crank: float = 0.2, coupler: float = 0.45, rocker: float = 0.4) -> ClosedRobot:
    """Return the linkage of slender rods of 2 kg/m in the x-z plane; the loop joint connects coupler and rocker.

    Joints turn about -y. Crank and rocker angles are relative to +x, the coupler angle relative to the crank. The joint
    of the crank is at the origin, that of the rocker at (ground, 0, 0). `legged.loops.assemble` closes the loop.

    Args:
        ground, crank, coupler, rocker: Distances between the joints of each link, [m], positive and at most 1000.
    """
    lengths = {"crank": crank, "coupler": coupler, "rocker": rocker}
    for name, length in {"ground": ground, **lengths}.items():
        number(name, length, "m", above=0.0, most=1e3)
    bar = {name: rod_inertia(2.0 * length, (0, 0, 0), (length, 0, 0)) for name, length in lengths.items()}
    linkage = LoopBuilder("four-bar linkage", Link("ground", point_mass(1.0)), base=FixedBase())
    linkage.add(Revolute("crank joint", "-y"), Link("crank", bar["crank"]), to="ground")
    linkage.add(Revolute("pin", "-y"), Link("coupler", bar["coupler"]), to="crank", at=(crank, 0, 0))
    linkage.add(Revolute("rocker joint", "-y"), Link("rocker", bar["rocker"]), to="ground", at=(ground, 0, 0))
    pin = Revolute("closing pin", "-y")
    return linkage.close(pin, parent="coupler", child="rocker", at=(coupler, 0, 0), child_at=(rocker, 0, 0)).build()


@checked
def five_bar_leg(base: Base | None = None, gravity: Vector = (0.0, 0.0, -9.81)) -> ClosedRobot:
    """Return a trunk of 3 kg on the leg; the loop joint connects the shanks at the foot.

    The hips are 0.1 m apart, thighs 0.15 m and shanks 0.3 m long. Joints turn about -y; thigh angles
    are relative to straight down, shank angles relative to the thigh. `legged.loops.assemble` closes the leg.

    Args:
        base: Base type of the trunk; planar by default.
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes.
    """
    leg = LoopBuilder(
        "five-bar leg", Link("trunk", box_inertia(3.0, (0.3, 0.15, 0.1))), base=base or PlanarBase(), gravity=gravity
    )
    return _add_five_bar(leg).build()


@checked
def five_bar_quadruped(base: Base | None = None, gravity: Vector = (0.0, 0.0, -9.81)) -> ClosedRobot:
    """Return a trunk of 12 kg on four five-bar legs, each as `five_bar_leg`, at x = +-0.3 m and y = +-0.15 m.

    `legged.loops.assemble` closes the legs.

    Args:
        base: Base type of the trunk; floating by default.
        gravity: Gravitational acceleration, (3,), [m/s^2], world axes.
    """
    robot = LoopBuilder(
        "five-bar quadruped",
        Link("trunk", box_inertia(12.0, (0.8, 0.3, 0.1))),
        base=base or FloatingBase(),
        gravity=gravity,
    )
    for name, x, y in (("FL", 0.3, 0.15), ("FR", 0.3, -0.15), ("RL", -0.3, 0.15), ("RR", -0.3, -0.15)):
        _add_five_bar(robot, f"{name}_", (x, y, 0.0))
    return robot.build()


def _add_five_bar(robot: LoopBuilder, prefix: str = "", at: Vector = (0.0, 0.0, 0.0)) -> LoopBuilder:
    """Add a five-bar leg to a robot's trunk, with the middle between its hips at a point, (3,), [m], trunk axes."""
    thigh, shank = (0.0, 0.0, -0.15), (0.0, 0.0, -0.3)
    for side, x in (("front", 0.05), ("rear", -0.05)):
        foot = {f"{prefix}foot": shank} if side == "rear" else {}
        robot.add(
            Revolute(f"{prefix}{side}_hip", "-y"),
            Link(f"{prefix}{side}_thigh", rod_inertia(0.2, (0, 0, 0), thigh)),
            to="trunk",
            at=(at[0] + x, at[1], at[2]),
        )
        shin = Link(f"{prefix}{side}_shank", rod_inertia(0.15, (0, 0, 0), shank), foot)
        robot.add(Revolute(f"{prefix}{side}_knee", "-y"), shin, to=f"{prefix}{side}_thigh", at=thigh)
    ankle, parent, child = Revolute(f"{prefix}ankle", "-y"), f"{prefix}rear_shank", f"{prefix}front_shank"
    return robot.close(ankle, parent=parent, child=child, at=shank, child_at=shank)


@checked
def delta() -> ClosedRobot:
    """Return the robot: 18 degrees of freedom of the spanning tree, 15 constraints, and 3 degrees of freedom.

    The arms turn about tangents of the base. They point outward at zero and downward with positive angles. Each carries
    two rods on universal joints. A ball joint connects the platform to the first rod, and five more ball joints close
    the loops, which are closed at zero.
    """
    base, plate = 0.2, 0.06  # [m], radii to the joints
    length, rod, spread = 0.25, 0.6, 0.1  # [m], of an arm and a rod, and the distance between the rods of a pair
    reach = base + length - plate
    tip = np.array([-reach, 0.0, -np.sqrt(rod**2 - reach**2)])  # of a rod at zero, from the elbow
    arm = Limb().add(Revolute("shoulder", "y"), Link("arm", rod_inertia(0.3, (0, 0, 0), (length, 0, 0))))
    for side, y in (("left", spread / 2), ("right", -spread / 2)):
        bar = Link(f"{side}_rod", rod_inertia(0.1, (0, 0, 0), tip))
        across = tuple(np.cross(tip, (0, 1, 0)) / rod)
        arm.add(Universal(f"{side}_elbow", "y", across), bar, at=(length, y, 0), to="arm")
    robot = LoopBuilder("delta", Link("base", cylinder_inertia(5.0, base, (0, 0, 0), (0, 0, 0.02))), base=FixedBase())
    corners = [(k, side, y) for k in range(3) for side, y in (("left", spread / 2), ("right", -spread / 2))]
    for k in range(3):
        turn = rpy(0.0, 0.0, 2 * np.pi * k / 3)
        robot.attach(arm, to="base", at=turn @ (base, 0, 0), rotation=turn, prefix=f"{'abc'[k]}_")
    platform = Link("platform", cylinder_inertia(0.2, plate, (0, 0, 0), (0, 0, 0.01)))
    for k, side, y in corners:
        turn = rpy(0.0, 0.0, 2 * np.pi * k / 3)
        corner, name = turn @ (plate, y, 0), f"{'abc'[k]}_{side}"
        if k == 0 and side == "left":  # the platform's origin is at its own joint
            first = corner
            moved = Link(platform.name, platform.inertia.moved(np.eye(3), -first))
            robot.add(Spherical(f"{name}_ball"), moved, to=f"{name}_rod", at=tip)
        else:
            ball = Spherical(f"{name}_ball")
            robot.close(ball, parent=f"{name}_rod", child="platform", at=tip, child_at=corner - first)
    return robot.build()
