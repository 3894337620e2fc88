"""A planar four-bar linkage: crank, coupler and rocker on the ground."""

from legged import FixedBase, Link, Revolute, point_mass, rod_inertia
from legged.checked import checked
from legged.loops import ClosedRobot, LoopBuilder


@checked
def four_bar(ground: float = 0.5, crank: float = 0.2, coupler: float = 0.45, rocker: float = 0.4) -> ClosedRobot:
    """Return the linkage of slender rods of 2 kg/m in the x-z plane; the loop joint connects coupler and rocker.

    Joints turn about -y. Crank and rocker angles are relative to +x, the coupler angle relative to the crank. The joint
    of the crank is at the origin, that of the rocker at (ground, 0, 0). `legged.loops.assemble` closes the loop.

    Args:
        ground, crank, coupler, rocker: Distances between the joints of each link, [m].
    """
    bar = {
        name: rod_inertia(2.0 * length, (0, 0, 0), (length, 0, 0)) for name, length in _lengths(crank, coupler, rocker)
    }
    linkage = LoopBuilder("four-bar linkage", Link("ground", point_mass(1.0)), base=FixedBase())
    linkage.add(Revolute("crank joint", "-y"), Link("crank", bar["crank"]), to="ground")
    linkage.add(Revolute("pin", "-y"), Link("coupler", bar["coupler"]), to="crank", at=(crank, 0, 0))
    linkage.add(Revolute("rocker joint", "-y"), Link("rocker", bar["rocker"]), to="ground", at=(ground, 0, 0))
    closing = {"at": (coupler, 0, 0), "child_at": (rocker, 0, 0)}
    return linkage.close(Revolute("closing pin", "-y"), parent="coupler", child="rocker", **closing).build()


def _lengths(*lengths: float) -> list[tuple[str, float]]:
    return list(zip(("crank", "coupler", "rocker"), lengths, strict=True))
